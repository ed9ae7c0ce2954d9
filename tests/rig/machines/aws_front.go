package main

import "net/http"

// openAWS is the account's HTTPS door; what instances and pods ask over plain HTTP is added to plain.
func openAWS(k *cloud, log *wire, plain *http.ServeMux) http.Handler {
	return http.NotFoundHandler()
}
