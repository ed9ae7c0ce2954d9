# cmake -D OUT=FILE -D "ASSETS=name=path;name=path" -P embed.cmake
# Writes a C file that holds each file as `struct asset asset_NAME`.
set(text "#include \"controller/report/assets.h\"\n")
foreach(asset IN LISTS ASSETS)
	string(REGEX MATCH "^([^=]+)=(.*)$" _ "${asset}")
	set(name ${CMAKE_MATCH_1})
	set(path ${CMAKE_MATCH_2})
	file(READ ${path} hex HEX)
	string(LENGTH "${hex}" digits)
	math(EXPR size "${digits} / 2")
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
	string(APPEND text "\nstatic const char ${name}[] = { ${bytes} 0 };\n"
	                   "const struct asset asset_${name} = { ${name}, ${size} };\n")
endforeach()
file(WRITE ${OUT} "${text}")
