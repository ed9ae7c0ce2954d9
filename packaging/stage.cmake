# CPack runs this between installing into its folder and packing it: Debian's changelog, compressed texts, one time for all
# files (SOURCE_DATE_EPOCH), modes that the builder's umask has no say in.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(docs ${root}/usr/share/doc/preheat)
set(epoch $ENV{SOURCE_DATE_EPOCH})
if(NOT epoch MATCHES "^[0-9]+$")
	message(FATAL_ERROR "SOURCE_DATE_EPOCH: found '${epoch}'; needed: seconds since 1970 (packaging/deb.sh takes the commit's)")
endif()

function(run)
	execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE)
	set(said ${said} PARENT_SCOPE)
endfunction()

run(date -u -R -d @${epoch})
file(WRITE ${docs}/changelog.Debian "preheat (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Packaged by CPack from the sources; what is new: changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${said}
")
configure_file(${CPACK_PREHEAT_SOURCE}/CHANGELOG.md ${docs}/changelog COPYONLY)
file(GLOB_RECURSE pages ${root}/usr/share/man/*.[1-8])
foreach(text ${docs}/changelog.Debian ${docs}/changelog ${pages})
	run(gzip -9nf ${text})
endforeach()
run(find ${root} -type d -exec chmod 755 {} +)
run(find ${root} -type f -exec chmod u=rwX,go=rX {} +)
run(find ${root} -exec touch -h -d @${epoch} {} +)
