# Writes OUT, which names the commit that is built: what PREHEAT_COMMIT says (12 digits, "-modified" behind them where files
# were changed), else what git says, else what `git archive` left in commit.txt, else "unknown".
# Usage: cmake -D SOURCE=DIR -D OUT=FILE [-D PREHEAT_COMMIT=COMMIT] -P commit.cmake
cmake_minimum_required(VERSION 3.25)

set(given "${PREHEAT_COMMIT}")
if(given STREQUAL "")
	set(given "$ENV{PREHEAT_COMMIT}")
endif()

# A source archive may lie within the checkout of something else.
function(ask_git result)
	execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix --short=12 HEAD
	                OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
	if(failed OR NOT said MATCHES "^\n([0-9a-f]+)$")
		return()
	endif()
	set(commit ${CMAKE_MATCH_1})
	execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
	                OUTPUT_VARIABLE changes ERROR_QUIET)
	if(NOT changes STREQUAL "")
		string(APPEND commit -modified)
	endif()
	set(${result} ${commit} PARENT_SCOPE)
endfunction()

set(commit unknown)
if(NOT given STREQUAL "")
	if(NOT given MATCHES "^[0-9a-f]+(-modified)?$" AND NOT given STREQUAL unknown)
		message(FATAL_ERROR "PREHEAT_COMMIT: found '${given}'; allowed: a commit in hexadecimal, '-modified' behind it where "
		        "files were changed, or 'unknown'")
	endif()
	set(commit ${given})
else()
	file(STRINGS ${SOURCE}/packaging/commit.txt archived LIMIT_COUNT 1)
	if(archived MATCHES "^[0-9a-f]+$")
		set(commit ${archived})
	endif()
	ask_git(commit)
endif()

set(modified 0)
if(commit MATCHES "^(.*)-modified$")
	set(commit ${CMAKE_MATCH_1})
	set(modified 1)
endif()
if(NOT commit STREQUAL unknown)
	string(SUBSTRING ${commit} 0 12 commit)
endif()
set(text "#define PREHEAT_COMMIT \"${commit}\"\n#define PREHEAT_MODIFIED ${modified}\n")
set(before "")
if(EXISTS ${OUT})
	file(READ ${OUT} before)
endif()
if(NOT text STREQUAL before)
	file(WRITE ${OUT} "${text}")
endif()
