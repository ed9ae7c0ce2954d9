# What makes a release build hard to attack and the same wherever it is built.
include(CheckCCompilerFlag)

add_compile_options(-fPIE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection)
check_c_compiler_flag(-fcf-protection has_cf_protection) # x86 only
if(has_cf_protection)
	add_compile_options(-fcf-protection)
endif()
add_link_options(-pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed -Wl,--build-id=sha1)

# The later ones are tried first.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=./build)
