#include "engine/files/weights_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

std::string file_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<float> counting(std::int64_t count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i) / 64;
  return values;
}

// A GPT-2 in memory whose every weight is another number.
struct SmallGpt {
  Gpt2Shape shape{.layers = 2, .heads = 2, .d_model = 4, .vocab = 5, .max_seq = 3, .tied_head = true};
  std::vector<std::vector<float>> values;
  std::vector<TensorView> tensors;

  explicit SmallGpt(bool in_out = false, const std::string& prefix = "") {
    const std::int64_t c = shape.d_model;
    const auto linear = [in_out](std::int64_t out, std::int64_t in) {
      return in_out ? std::vector{in, out} : std::vector{out, in};
    };
    add(prefix + "wte.weight", {shape.vocab, c});
    add(prefix + "wpe.weight", {shape.max_seq, c});
    for (int layer = 0; layer < shape.layers; ++layer) {
      const std::string h = prefix + "h." + std::to_string(layer) + ".";
      add(h + "ln_1.weight", {c});
      add(h + "ln_1.bias", {c});
      add(h + "attn.c_attn.weight", linear(3 * c, c));
      add(h + "attn.c_attn.bias", {3 * c});
      add(h + "attn.c_proj.weight", linear(c, c));
      add(h + "attn.c_proj.bias", {c});
      add(h + "ln_2.weight", {c});
      add(h + "ln_2.bias", {c});
      add(h + "mlp.c_fc.weight", linear(4 * c, c));
      add(h + "mlp.c_fc.bias", {4 * c});
      add(h + "mlp.c_proj.weight", linear(c, 4 * c));
      add(h + "mlp.c_proj.bias", {c});
    }
    add(prefix + "ln_f.weight", {c});
    add(prefix + "ln_f.bias", {c});
  }

  void add(const std::string& name, std::vector<std::int64_t> sizes) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    values.push_back(counting(count, static_cast<float>(values.size())));
    tensors.push_back({name, TensorType::f32, std::move(sizes), std::as_bytes(std::span(values.back()))});
  }
};

void expect_small_gpt(const Gpt2Shape& shape) {
  EXPECT_EQ(shape.layers, 2);
  EXPECT_EQ(shape.heads, 2);
  EXPECT_EQ(shape.d_model, 4);
  EXPECT_EQ(shape.vocab, 5);
  EXPECT_EQ(shape.max_seq, 3);
  EXPECT_TRUE(shape.tied_head);
}

class WeightsFiles : public testing::Test {
 protected:
  std::filesystem::path write(const char* name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  std::filesystem::path safetensors(const std::string& header, std::size_t data_bytes,
                                    const char* name = "x.safetensors") const {
    return write(name, raw(std::vector<std::uint64_t>{header.size()}) + header + std::string(data_bytes, 'd'));
  }

  // The sentence, without the folder.
  template <class Act>
  std::string error_of(Act act) const {
    std::string text = complaint<DataError>(act);
    const std::string folder = folder_.path().string() + "/";
    if (const auto place = text.find(folder); place != std::string::npos) text.erase(place, folder.size());
    return text;
  }
  std::string opening(const std::filesystem::path& file) const {
    return error_of([&] { WeightsFile opened(file); });
  }
  std::string opening_header(const std::string& header, std::size_t data_bytes) const {
    return opening(safetensors(header, data_bytes));
  }
  std::string shape_error(const std::vector<TensorView>& tensors,
                          const std::map<std::string, std::string>& metadata = {}) const {
    write_safetensors(folder_ / "x.safetensors", tensors, metadata);
    return error_of([&] { WeightsFile(folder_ / "x.safetensors").gpt2_shape(); });
  }

  std::filesystem::path llmc(LlmcVersion version = LlmcVersion::f32) const {
    const SmallGpt gpt;
    write_llmc(folder_ / "x.bin", gpt.shape, gpt.tensors, version);
    return folder_ / "x.bin";
  }
  // An llm.c file with one number of its header changed.
  std::string opening_llmc_with(std::size_t word, std::int32_t value) const {
    std::string bytes = file_bytes(llmc());
    std::memcpy(bytes.data() + 4 * word, &value, sizeof value);
    return opening(write("x.bin", bytes));
  }

  TemporaryFolder folder_;
};

TEST_F(WeightsFiles, SafetensorsOfAnotherWriterAreRead) {
  // Written out by hand, as the format's page describes it.
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I64","shape":[2],"data_offsets":[24,40]},)"
      R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"scalar":{"dtype":"BF16","shape":[],"data_offsets":[40,42]},)"
      R"("empty":{"dtype":"U8","shape":[0,9],"data_offsets":[42,42]}}   )";
  const auto file =
      write("x", raw(std::vector<std::uint64_t>{header.size()}) + header + raw(std::vector<float>{0, 1, 2, 3, 4, 5}) +
                     raw(std::vector<std::int64_t>{7, 8}) + raw(std::vector<std::uint16_t>{0x3f80}));
  const WeightsFile weights(file);
  EXPECT_EQ(weights.format(), WeightsFormat::safetensors);
  EXPECT_EQ(weights.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(weights.tensors().size(), 4u);
  EXPECT_EQ(weights.tensors()[0].name, "a");
  EXPECT_EQ(weights.tensors()[0].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(weights.tensor("a").offset, static_cast<std::int64_t>(8 + header.size()));
  EXPECT_EQ(weights.read_f32(weights.tensor("a")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(weights.read_f32(weights.tensor("scalar")), (std::vector<float>{1}));
  EXPECT_EQ(weights.tensor("empty").bytes, 0);
  std::array<std::int64_t, 2> b{};
  weights.read(weights.tensor("b"), std::as_writable_bytes(std::span(b)));
  EXPECT_EQ(b, (std::array<std::int64_t, 2>{7, 8}));
  EXPECT_EQ(error_of([&] { weights.read_f32(weights.tensor("b")); }), "x: b is of type I64, expected floats");
  EXPECT_EQ(error_of([&] { weights.tensor("c"); }), "x: c is missing");
  EXPECT_EQ(error_of([&] { weights.read(weights.tensor("b"), std::as_writable_bytes(std::span(b)).first(8)); }),
            "x: b has 16 bytes, but the caller has room for 8");
}

TEST_F(WeightsFiles, SafetensorsComeBackAsTheyWereWritten) {
  const SmallGpt gpt;
  const std::map<std::string, std::string> metadata = {{"n_head", "2"}, {"note", "quotes \" and \xc3\xa4"}};
  write_safetensors(folder_ / "x.safetensors", gpt.tensors, metadata);
  const WeightsFile weights(folder_ / "x.safetensors");
  EXPECT_EQ(weights.metadata(), metadata);
  ASSERT_EQ(weights.tensors().size(), gpt.tensors.size());
  for (std::size_t i = 0; i < gpt.tensors.size(); ++i) {
    const TensorInfo& tensor = weights.tensor(gpt.tensors[i].name);
    EXPECT_EQ(tensor.shape, gpt.tensors[i].shape);
    EXPECT_EQ(weights.read_f32(tensor), gpt.values[i]);
    EXPECT_FALSE(tensor.in_out);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.safetensors.part"));
}

TEST_F(WeightsFiles, EveryTensorIsAligned) {
  const std::vector<std::uint16_t> odd(3);
  const std::vector<double> wide(2);
  const std::vector<TensorView> tensors = {{"odd", TensorType::bf16, {3}, std::as_bytes(std::span(odd))},
                                           {"wide", TensorType::f64, {2}, std::as_bytes(std::span(wide))}};
  write_safetensors(folder_ / "x.safetensors", tensors);
  const WeightsFile weights(folder_ / "x.safetensors");
  for (const TensorInfo& tensor : weights.tensors())
    EXPECT_EQ(tensor.offset % bytes_each(tensor.type), 0) << tensor.name;
}

TEST_F(WeightsFiles, ShapeOfAGpt2) {
  const SmallGpt gpt;
  write_safetensors(folder_ / "x.safetensors", gpt.tensors, {{"n_head", "2"}});
  expect_small_gpt(WeightsFile(folder_ / "x.safetensors").gpt2_shape());
  write_safetensors(folder_ / "x.safetensors", gpt.tensors);
  EXPECT_EQ(WeightsFile(folder_ / "x.safetensors").gpt2_shape().heads, 0);
}

TEST_F(WeightsFiles, AHeadOfItsOwnIsTiedOnlyWhereItsBytesAreTheEmbeddings) {
  SmallGpt gpt;
  gpt.add("lm_head.weight", {5, 4});
  write_safetensors(folder_ / "own.safetensors", gpt.tensors);
  EXPECT_FALSE(WeightsFile(folder_ / "own.safetensors").gpt2_shape().tied_head);
  gpt.tensors.back().bytes = gpt.tensors.front().bytes;
  write_safetensors(folder_ / "same.safetensors", gpt.tensors);
  EXPECT_TRUE(WeightsFile(folder_ / "same.safetensors").gpt2_shape().tied_head);
}

TEST_F(WeightsFiles, HuggingFacesLinearWeightsAreInOut) {
  SmallGpt gpt(true, "transformer.");
  gpt.add("transformer.h.0.attn.bias", {1, 1, 3, 3});
  gpt.add("transformer.h.1.attn.masked_bias", {});
  write_safetensors(folder_ / "x.safetensors", gpt.tensors);
  const WeightsFile weights(folder_ / "x.safetensors");
  EXPECT_EQ(weights.gpt2_shape().layers, 2);
  EXPECT_TRUE(weights.tensor("h.0.attn.c_attn.weight").in_out);
  EXPECT_TRUE(weights.tensor("h.1.attn.c_proj.weight").in_out);  // square, so its shape doesn't show it
  EXPECT_TRUE(weights.tensor("h.1.mlp.c_fc.weight").in_out);
  EXPECT_TRUE(weights.tensor("h.1.mlp.c_proj.weight").in_out);
  EXPECT_FALSE(weights.tensor("h.1.mlp.c_proj.bias").in_out);
  EXPECT_FALSE(weights.tensor("wte.weight").in_out);
  EXPECT_FALSE(weights.tensor("h.0.ln_1.weight").in_out);
  EXPECT_EQ(weights.find("h.0.attn.bias"), nullptr);  // masks, not weights
  EXPECT_EQ(weights.find("h.1.attn.masked_bias"), nullptr);
  EXPECT_EQ(weights.tensors().size(), gpt.tensors.size() - 2);
}

TEST_F(WeightsFiles, LlmcHasTheLayoutOfItsSource) {
  const SmallGpt gpt;
  const std::string bytes = file_bytes(llmc());
  std::array<std::int32_t, 256> header;
  std::memcpy(header.data(), bytes.data(), sizeof header);
  const std::array<std::int32_t, 9> expected = {20240326, 3, 3, 5, 2, 2, 4, 128, 0};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), header.begin()));
  // wte (Vp, C), wpe (maxT, C), then each of the twelve over both layers, then ln_f.
  const std::size_t layer = 4 + 4 + 48 + 12 + 16 + 4 + 4 + 4 + 64 + 16 + 64 + 4;
  ASSERT_EQ(bytes.size(), 1024 + 4 * (128 * 4 + 3 * 4 + 2 * layer + 8));
  const auto float_at = [&](std::size_t place) {
    float value;
    std::memcpy(&value, bytes.data() + 1024 + 4 * place, sizeof value);
    return value;
  };
  EXPECT_EQ(float_at(0), gpt.values[0][0]);
  EXPECT_EQ(float_at(19), gpt.values[0][19]);
  EXPECT_EQ(float_at(20), 0);  // the padding
  EXPECT_EQ(float_at(512), gpt.values[1][0]);
  EXPECT_EQ(float_at(512 + 12), gpt.values[2][0]);       // h.0.ln_1.weight
  EXPECT_EQ(float_at(512 + 12 + 4), gpt.values[14][0]);  // h.1.ln_1.weight
  EXPECT_EQ(float_at(512 + 12 + 16), gpt.values[4][0]);  // h.0.attn.c_attn.weight, behind both layers' ln_1
  EXPECT_EQ(float_at(512 + 12 + 2 * layer + 7), gpt.values.back()[3]);
}

TEST_F(WeightsFiles, LlmcComesBackAsItWasWritten) {
  const SmallGpt gpt;
  const WeightsFile weights(llmc());
  EXPECT_EQ(weights.format(), WeightsFormat::llmc);
  expect_small_gpt(weights.gpt2_shape());
  ASSERT_EQ(weights.tensors().size(), gpt.tensors.size());
  for (std::size_t i = 0; i < gpt.tensors.size(); ++i) {
    const TensorInfo& tensor = weights.tensor(gpt.tensors[i].name);
    EXPECT_EQ(tensor.shape, gpt.tensors[i].shape);
    EXPECT_EQ(weights.read_f32(tensor), gpt.values[i]) << tensor.name;
    EXPECT_FALSE(tensor.in_out);
  }
}

TEST_F(WeightsFiles, LlmcInBf16IsRounded) {
  const SmallGpt gpt;
  const WeightsFile weights(llmc(LlmcVersion::bf16));
  for (std::size_t i = 0; i < gpt.tensors.size(); ++i) {
    const TensorInfo& tensor = weights.tensor(gpt.tensors[i].name);
    EXPECT_EQ(tensor.type, TensorType::bf16);
    const std::vector<float> read = weights.read_f32(tensor);
    ASSERT_EQ(read.size(), gpt.values[i].size());
    for (std::size_t j = 0; j < read.size(); ++j) EXPECT_NEAR(read[j], gpt.values[i][j], gpt.values[i][j] / 256);
  }
}

TEST_F(WeightsFiles, LlmcIsNotWrittenWithoutWhatItNeeds) {
  SmallGpt gpt;
  const auto writing = [&](const Gpt2Shape& shape) {
    return error_of([&] { write_llmc(folder_ / "x.bin", shape, gpt.tensors, LlmcVersion::f32); });
  };
  Gpt2Shape shape = gpt.shape;
  shape.tied_head = false;
  EXPECT_EQ(writing(shape), "x.bin cannot be written: llm.c's format cannot hold an untied head");
  shape = gpt.shape;
  shape.heads = 0;
  EXPECT_EQ(writing(shape), "x.bin cannot be written: llm.c's format needs the number of heads");
  shape = gpt.shape;
  shape.layers = 3;
  EXPECT_EQ(writing(shape), "x.bin cannot be written: h.2.ln_1.weight is missing");
  gpt.tensors[4].shape = {4, 12};
  EXPECT_EQ(writing(gpt.shape),
            "x.bin cannot be written: h.0.attn.c_attn.weight has the shape (4, 12), expected (12, 4)");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));  // no part is left either
}

TEST_F(WeightsFiles, WhatCannotBeWritten) {
  const std::vector<float> values(6);
  const auto bytes = std::as_bytes(std::span(values));
  const std::vector<TensorView> wrong = {{"a", TensorType::f32, {2, 2}, bytes}};
  EXPECT_EQ(error_of([&] { write_safetensors(folder_ / "x", wrong); }),
            "x cannot be written: a has the shape (2, 2) of F32 and 24 bytes");
  const std::vector<TensorView> twice = {{"a", TensorType::f32, {6}, bytes}, {"a", TensorType::f32, {6}, bytes}};
  EXPECT_EQ(error_of([&] { write_safetensors(folder_ / "x", twice); }), "x cannot be written: a is given twice");
  EXPECT_EQ(complaint<DataError>([&] { write_safetensors("/nowhere/x", {}); }),
            "/nowhere/x cannot be written: No such file or directory");
}

TEST_F(WeightsFiles, AnOldFileStaysWhereANewOneFails) {
  const SmallGpt gpt;
  write("x.bin", "old");
  Gpt2Shape shape = gpt.shape;
  shape.layers = 3;  // detected after half of the file has been written
  EXPECT_THROW(write_llmc(folder_ / "x.bin", shape, gpt.tensors, LlmcVersion::f32), DataError);
  EXPECT_EQ(file_bytes(folder_ / "x.bin"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.bin.part"));
}

TEST_F(WeightsFiles, CutShort) {
  const SmallGpt gpt;
  write_safetensors(folder_ / "x.safetensors", gpt.tensors);
  const std::string whole = file_bytes(folder_ / "x.safetensors");
  EXPECT_EQ(opening(write("x.safetensors", whole.substr(0, whole.size() - 4))),
            "x.safetensors is cut short: ln_f.bias ends at byte " + std::to_string(whole.size()) + ", the file at " +
                std::to_string(whole.size() - 4));
  EXPECT_EQ(opening(write("x.safetensors", whole.substr(0, 100))).substr(0, 55),
            "x.safetensors is cut short or isn't a safetensors file:");
  const std::string checkpoint = file_bytes(llmc());
  EXPECT_EQ(opening(write("x.bin", checkpoint.substr(0, checkpoint.size() - 1))),
            "x.bin is cut short: ln_f.bias ends at byte " + std::to_string(checkpoint.size()) + ", the file at " +
                std::to_string(checkpoint.size() - 1));
  EXPECT_EQ(opening(write("x.bin", checkpoint.substr(0, 1000))),
            "x.bin is cut short: llm.c's header alone has 1024 bytes, the file 1000");
}

TEST_F(WeightsFiles, TooLong) {
  EXPECT_EQ(opening_header(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 5),
            "x.safetensors: 2 bytes after a belong to no tensor");
  EXPECT_EQ(opening(write("x.bin", file_bytes(llmc()) + "more")), "x.bin: 4 bytes after ln_f.bias belong to no tensor");
}

TEST_F(WeightsFiles, NeitherFormat) {
  const std::string sentence = " is neither a safetensors file nor an llm.c checkpoint";
  EXPECT_EQ(opening(write("empty", "")), "empty" + sentence);
  EXPECT_EQ(opening(write("zip", "PK\x03\x04 and more than that")), "zip" + sentence);
  EXPECT_EQ(opening(write("tokens.bin", raw(std::vector<std::int32_t>{20240520, 1, 0, 0}))), "tokens.bin" + sentence);
  EXPECT_EQ(opening(folder_ / "none"), "none does not exist");
  EXPECT_NE(opening(folder_.path()).find(" is a folder, not a file"), std::string::npos);
}

TEST_F(WeightsFiles, HeadersThatAreNoJson) {
  EXPECT_EQ(opening_header(R"({"a":{"dtype":"U8","shape":[3],)", 0).substr(0, 57),
            "x.safetensors: its safetensors header isn't valid JSON at");
  EXPECT_EQ(opening_header("{\"a\xff\":1}", 0).substr(0, 57),
            "x.safetensors: its safetensors header isn't valid JSON at");
}

TEST_F(WeightsFiles, HeadersThatLie) {
  // A length of 2^63 must be rejected.
  EXPECT_EQ(
      opening(write("x", raw(std::vector<std::uint64_t>{std::uint64_t{1} << 63}) + "{}")),
      "x is cut short or isn't a safetensors file: it announces a header of 9223372036854775808 bytes, but at most 2 "
      "are possible");
  const auto with = [&](const std::string& type, const std::string& shape, const std::string& offsets) {
    return opening_header(
        R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 8);
  };
  EXPECT_EQ(with("F32", "[2]", "[0,8]"), "");
  EXPECT_EQ(with("F31", "[2]", "[0,8]"), "x.safetensors: a has the unknown type \"F31\"");
  EXPECT_EQ(with("F32", "[-2]", "[0,8]"), "x.safetensors: a has a negative number in its shape");
  EXPECT_EQ(with("F32", "[2.5]", "[0,8]"), "x.safetensors: a has a value in its shape that isn't a whole number");
  EXPECT_EQ(with("F32", "[1e400]", "[0,8]"), "x.safetensors: a contains a number that is too large");
  EXPECT_EQ(with("F32", "[4294967296,4294967296]", "[0,8]"),
            "x.safetensors: a has the shape (4294967296, 4294967296), which is larger than any file");
  EXPECT_EQ(with("F32", "[18446744073709551615]", "[0,8]"),
            "x.safetensors: a has a number in its shape that is too large");
  EXPECT_EQ(with("F32", "[3]", "[0,8]"), "x.safetensors: a has the shape (3) of F32, which is 12 bytes, but takes 8");
  EXPECT_EQ(with("F32", "[2]", "[8,0]"), "x.safetensors: a has data_offsets that aren't a start and an end");
  EXPECT_EQ(with("F32", "[2]", "[0]"), "x.safetensors: a has data_offsets that aren't a start and an end");
  EXPECT_EQ(with("F32", "[2]", "[-8,0]"), "x.safetensors: a has a negative number in its data_offsets");
  EXPECT_EQ(with("F32", "[2]", "[4,12]"), "x.safetensors: 4 bytes between the header and a belong to no tensor");
  EXPECT_EQ(with("U8", "[4611686018427387903]", "[0,4611686018427387903]").substr(0, 56),
            "x.safetensors is cut short: a ends at byte 4611686018427");
  EXPECT_EQ(with("F32", "[[2]]", "[0,8]"), "x.safetensors: a has a list where none is allowed");
  EXPECT_EQ(with("F32", "{\"x\":2}", "[0,8]"), "x.safetensors: a is nested too deeply");
  EXPECT_EQ(with("F32", "2", "[0,8]"), "x.safetensors: a has no shape");
  std::string long_list = "[1";
  for (int i = 0; i < 100; ++i) long_list += ",1";
  EXPECT_EQ(with("F32", long_list + "]", "[0,8]"), "x.safetensors: a has a list of more than 64 numbers");
  EXPECT_EQ(opening_header("{\"a\":" + std::string(1'000'000, '['), 0),
            "x.safetensors: a has a list where none is allowed");
  EXPECT_EQ(opening_header(R"({"a":7})", 0), "x.safetensors: a isn't an object");
  EXPECT_EQ(opening_header(R"({"a":{}})", 0), "x.safetensors: a has no dtype");
  EXPECT_EQ(opening_header(R"({"__metadata__":{"n_head":2}})", 0),
            "x.safetensors: __metadata__ holds \"n_head\", which isn't a string");
}

TEST_F(WeightsFiles, OverlapsGapsAndDoubledNames) {
  const auto two = [&](const std::string& other, const std::string& offsets) {
    return opening_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},")" + other +
                              R"(":{"dtype":"U8","shape":[4],"data_offsets":)" + offsets + "}}",
                          8);
  };
  EXPECT_EQ(two("b", "[4,8]"), "");
  EXPECT_EQ(two("b", "[3,7]"), "x.safetensors: b overlaps a");
  EXPECT_EQ(two("b", "[0,4]"), "x.safetensors: b overlaps a");
  EXPECT_EQ(two("b", "[5,9]"), "x.safetensors: 1 bytes between a and b belong to no tensor");
  EXPECT_EQ(two("a", "[4,8]"), "x.safetensors: the header names a twice");
  EXPECT_EQ(two("transformer.a", "[4,8]"), "x.safetensors: a occurs with and without \"transformer.\"");
  EXPECT_EQ(opening_header(R"({"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4),
            "x.safetensors: a holds \"dtype\" twice");
}

TEST_F(WeightsFiles, LlmcHeadersThatLie) {
  EXPECT_EQ(opening_llmc_with(1, 1),
            "x.bin is an llm.c checkpoint of version 1; only 3 (float32) and 5 (bfloat16) can be read");
  EXPECT_EQ(opening_llmc_with(0, 20240327), "x.bin is neither a safetensors file nor an llm.c checkpoint");
  EXPECT_EQ(opening_llmc_with(4, 0), "x.bin: its header says that the number of layers is 0");
  EXPECT_EQ(opening_llmc_with(6, -4), "x.bin: its header says that the model's width is -4");
  EXPECT_EQ(opening_llmc_with(7, 4), "x.bin: its header says that a vocabulary of 5 is padded to 4");
  EXPECT_EQ(opening_llmc_with(6, std::numeric_limits<std::int32_t>::max()).substr(0, 45),
            "x.bin is cut short: wte.weight ends at byte 1");
  // Two billion layers must not become a list of two billion tensors.
  EXPECT_EQ(opening_llmc_with(4, std::numeric_limits<std::int32_t>::max()).substr(0, 58),
            "x.bin is cut short: h.2147483646.ln_1.weight ends at byte ");
  std::string bytes = file_bytes(llmc());
  for (std::size_t word = 2; word < 8; ++word) {
    const std::int32_t most = std::numeric_limits<std::int32_t>::max();
    std::memcpy(bytes.data() + 4 * word, &most, sizeof most);
  }
  EXPECT_EQ(opening(write("x.bin", bytes)).substr(0, 58), "x.bin is cut short: wte.weight ends at byte 2^63 or later,");
  const std::string heads = opening_llmc_with(5, 3);
  EXPECT_EQ(heads, "");
  EXPECT_EQ(error_of([&] { WeightsFile(folder_ / "x.bin").gpt2_shape(); }),
            "x.bin: a width of 4 cannot have \"3\" heads");
}

TEST_F(WeightsFiles, WhatIsNoGpt2) {
  const auto without = [](const char* name) {
    SmallGpt gpt;
    std::erase_if(gpt.tensors, [&](const TensorView& tensor) { return tensor.name == name; });
    return gpt;
  };
  EXPECT_EQ(shape_error(without("wte.weight").tensors), "x.safetensors: wte.weight is missing");
  EXPECT_EQ(shape_error(without("h.1.ln_2.bias").tensors), "x.safetensors: h.1.ln_2.bias is missing");
  SmallGpt more;
  more.add("h.0.attn.rotary.weight", {2});
  EXPECT_EQ(shape_error(more.tensors), "x.safetensors: h.0.attn.rotary.weight isn't part of GPT-2");
  SmallGpt far;
  far.add("h.2147483647.ln_1.weight", {4});
  EXPECT_EQ(shape_error(far.tensors), "x.safetensors: a layer has an impossible number");
  SmallGpt wrong;
  wrong.tensors[3].shape = {2, 2};
  EXPECT_EQ(shape_error(wrong.tensors), "x.safetensors: h.0.ln_1.bias has the shape (2, 2), expected (4)");
  SmallGpt whole_numbers;
  whole_numbers.tensors[0].type = TensorType::i32;
  EXPECT_EQ(shape_error(whole_numbers.tensors), "x.safetensors: wte.weight is of type I32, expected floats");
  EXPECT_EQ(shape_error(SmallGpt().tensors, {{"n_head", "many"}}),
            "x.safetensors: a width of 4 cannot have \"many\" heads");
}

// Truncates and changes files at many places: each must be read, or an error must name it.
void damage(const std::filesystem::path& file, const std::string& whole, std::size_t header_bytes) {
  int read = 0, refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    std::filesystem::remove(file);  // some file systems flush a file that is written over
    std::ofstream(file, std::ios::binary) << bytes;
    try {
      const WeightsFile weights(file);
      for (const TensorInfo& tensor : weights.tensors()) {
        std::vector<std::byte> content(static_cast<std::size_t>(tensor.bytes));
        weights.read(tensor, content);
      }
      weights.gpt2_shape();
      ++read;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(file.filename().string()), std::string::npos) << error.what();
      ++refused;
    }
  };
  for (std::size_t place = 0; place < whole.size(); place += place < header_bytes ? 1 : 97) {
    attempt(whole.substr(0, place));
    std::string changed = whole;
    const std::array<char, 6> values = {'\0', '\xff', '9', '"', '[', static_cast<char>(whole[place] ^ 4)};
    changed[place] = values[place % values.size()];
    attempt(changed);
    changed[place] = static_cast<char>(whole[place] ^ (1 << (place % 8)));
    attempt(changed);
  }
  EXPECT_GT(read, 10);  // a weight may be any number, and some names may change unnoticed
  EXPECT_GT(refused, 100);
}

TEST_F(WeightsFiles, DamagedSafetensors) {
  const SmallGpt gpt;
  write_safetensors(folder_ / "x", gpt.tensors, {{"format", "pt"}, {"n_head", "2"}});
  const std::string whole = file_bytes(folder_ / "x");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, whole.data(), sizeof header_bytes);
  damage(folder_ / "x", whole, 8 + header_bytes);
}

TEST_F(WeightsFiles, DamagedLlmc) {
  damage(folder_ / "x", file_bytes(llmc()), 64);
}

TEST_F(WeightsFiles, AFileThatIsCutWhileItIsReadIsAnError) {
  const auto file = llmc();
  const WeightsFile weights(file);
  std::filesystem::resize_file(file, 1100);
  EXPECT_EQ(error_of([&] { weights.read_f32(weights.tensor("wpe.weight")); }),
            "x.bin was truncated while it was being read");
}

TEST_F(WeightsFiles, Moves) {
  WeightsFile one(llmc());
  WeightsFile other = std::move(one);
  EXPECT_EQ(other.read_f32(other.tensor("wpe.weight")).size(), 12u);
}

TEST(Numbers, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(-2.0f), 0xc000);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie rounds to even, here down
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // and here up
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f807fffu)), 0x3f80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);  // nearer to what would be 2^128
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::infinity()), 0x7f80);
  const std::vector<std::uint16_t> nan = {to_bf16(std::bit_cast<float>(0x7f800001u))};
  EXPECT_TRUE(std::isnan(to_f32(TensorType::bf16, std::as_bytes(std::span(nan)))[0]));
}

TEST(Numbers, HalvesAndDoublesBecomeFloats) {
  const std::vector<std::uint16_t> halves = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x83ff, 0x8000, 0x7c00, 0xfc00};
  const std::vector<float> expected = {1,
                                       -2,
                                       65504,
                                       0x1p-14f,
                                       0x1p-24f,
                                       -1023 * 0x1p-24f,
                                       -0.0f,
                                       std::numeric_limits<float>::infinity(),
                                       -std::numeric_limits<float>::infinity()};
  const std::vector<float> floats = to_f32(TensorType::f16, std::as_bytes(std::span(halves)));
  EXPECT_EQ(floats, expected);
  EXPECT_TRUE(std::signbit(floats[6]));
  const std::vector<std::uint16_t> nan = {0x7e01};
  EXPECT_TRUE(std::isnan(to_f32(TensorType::f16, std::as_bytes(std::span(nan)))[0]));
  const std::vector<double> doubles = {0.1, 1e300};
  EXPECT_EQ(to_f32(TensorType::f64, std::as_bytes(std::span(doubles))),
            (std::vector<float>{0.1f, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(complaint<DataError>([&] { to_f32(TensorType::u8, {}); }),
            "a tensor of type U8 isn't a floating-point tensor");
}

}  // namespace
}  // namespace stepladder
