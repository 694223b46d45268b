#include "app/text/secrets.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(WithoutSecrets, HidesWhatANameCallsSecret) {
  EXPECT_EQ(without_secrets({"stepladder", "watch", "--", "python", "t.py", "--api-key=abc"}),
            "stepladder watch -- python t.py --api-key=***");
  EXPECT_EQ(without_secrets({"x", "--token", "abc", "--steps", "5"}), "x --token *** --steps 5");
  EXPECT_EQ(without_secrets({"env", "WANDB_API_KEY=abc", "python"}), "env WANDB_API_KEY=*** python");
  EXPECT_EQ(without_secrets({"x", "KEY=a b c"}), "x KEY=***");
  for (const char* name :
       {"--apiKey", "--hf_token", "--db-password", "--aws.secret.access.key", "AWS_SECRET_ACCESS_KEY",
        "--client-secret", "--passwd", "--AUTH", "PGPASSWORD_pwd", "--credentials"})
    EXPECT_EQ(without_secrets({"x", std::string(name) + "=abc"}), "x " + std::string(name) + "=***");
}

TEST(WithoutSecrets, LeavesTrainingOptionsAlone) {
  for (const char* line :
       {"train --tokens-per-step 524288 --steps 5", "train --tokenizer=gpt2 --max-tokens=5", "x --keys 3 --author me",
        "x --sort-by=loss --monkey=1", "import - --gpu a100", "git clone https://host/a@b", "x --token --steps 5"})
    EXPECT_EQ(without_secrets({line}), line);
  EXPECT_EQ(without_secrets({"x", "--token", "--steps", "5"}), "x --token --steps 5");
  EXPECT_EQ(without_secrets({}), "");
}

TEST(WithoutSecrets, HidesThemInsideAShellsCommand) {
  EXPECT_EQ(without_secrets({"bash", "-c", "cd x && HF_TOKEN=abc python t.py --password xyz --steps 5"}),
            "bash -c cd x && HF_TOKEN=*** python t.py --password *** --steps 5");
  EXPECT_EQ(without_secrets({"bash", "-c", "export KEY='a b' && run"}), "bash -c export KEY=*** && run");
  EXPECT_EQ(without_secrets({"curl", "-H", "Authorization: Bearer abc"}), "curl -H Authorization: ***");
  EXPECT_EQ(without_secrets({"sh", "-c", "curl -H Bearer abc host"}), "sh -c curl -H Bearer *** host");
}

TEST(WithoutSecrets, HidesThemInUrls) {
  EXPECT_EQ(without_secrets({"git", "clone", "https://me:pass@host/a.git"}), "git clone https://***@host/a.git");
  EXPECT_EQ(without_secrets({"x", "--url=https://abc@host"}), "x --url=https://***@host");
  EXPECT_EQ(without_secrets({"x", "https://host/?a=1&api_key=abc&b=2"}), "x https://host/?a=1&api_key=***&b=2");
}

TEST(WithoutSecrets, HidesTokensByTheirForm) {
  EXPECT_EQ(without_secrets({"x", "sk-0123456789abcdef"}), "x ***");
  EXPECT_EQ(without_secrets({"x", "--login", "hf_0123456789abcdef"}), "x --login ***");
  EXPECT_EQ(without_secrets({"x", "--login=ghp_0123456789abcdef"}), "x --login=***");
  EXPECT_EQ(without_secrets({"x", "sk-learn"}), "x sk-learn");
}

struct Case {
  std::vector<std::string> arguments;
  std::string hidden;
};

// The same cases as tests/python/log_test.py's.
TEST(WithoutSecrets, AgreesWithThePythonModule) {
  const std::vector<Case> cases = {
      {{"PGPASSWORD=abc", "HFTOKEN=abc", "API_KEY_PROD=abc"}, "PGPASSWORD=*** HFTOKEN=*** API_KEY_PROD=***"},
      {{"run --password 'x y' --steps 5"}, "run --password *** --steps 5"},
      {{"authorization:Bearer abc"}, "authorization:***"},
      {{"Authorization:", "Bearer", "abc", "x"}, "Authorization: *** *** x"},
      {{"--header=Authorization: Basic abc"}, "--header=Authorization: ***"},
      {{"curl -H 'Authorization: Basic abc' host"}, "curl -H 'Authorization: ***' host"},
      {{"curl -H 'Cookie: a=b; c=d' host"}, "curl -H 'Cookie: ***' host"},
      {{"curl -H X-Api-Key:abc host"}, "curl -H X-Api-Key:*** host"},
      {{R"({"api_key": "a b", "steps": 5})"}, R"({"api_key": ***, "steps": 5})"},
      {{"{'wandb': {'token':'abc'}}"}, "{'wandb': {'token':***}}"},
      {{"password = abc, steps = 5"}, "password = ***, steps = 5"},
      {{"+wandb.api_key=abc"}, "+wandb.api_key=***"},
      {{"https://host/x?X-Amz-Credential=abc&X-Amz-Signature=abc"},
       "https://host/x?X-Amz-Credential=***&X-Amz-Signature=***"}};
  for (const Case& each : cases) EXPECT_EQ(without_secrets(each.arguments), each.hidden);
  for (const char* line :
       {"sk-learn", "http://localhost:8080/x", R"(C:\data\x.bin)", "lr: 0.1, steps: 5", "a::b", "KEY="})
    EXPECT_EQ(without_secrets({line}), line);
}

}  // namespace
}  // namespace stepladder
