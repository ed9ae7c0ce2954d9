package main

import "net/http"

// openAzure is the tenant's HTTPS door; what instances ask over plain HTTP is added to plain.
func openAzure(f *front, log *wire, plain *http.ServeMux) http.Handler {
	return http.NotFoundHandler()
}
