# Writes the header that names the commit, for --version: cmake -DGIT=GIT -DSOURCES=FOLDER -DHEADER=FILE -P .ci/commit.cmake
# "-dirty" follows the commit if its files were changed since. Each build runs this; a header that stays the same keeps its
# time, so nothing is linked anew.
set(commit)
if(GIT AND EXISTS "${SOURCES}/.git")  # else a repository around the sources would be named
  execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCES} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define STEPLADDER_COMMIT \"@commit@\"\n" @ONLY)
