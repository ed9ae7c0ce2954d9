//go:build tools

// Package tools pins the version of Litestream that the test runs.
package tools

import _ "github.com/benbjohnson/litestream/cmd/litestream"
