// Command journalgen writes the Go code of the journal's events from proto/journal.proto: their kinds, structs, wire code
// and constructors. `make generate` runs it.
//
// A message that the oneof of Event names is an event. The field's number is its kind, and the option room says which
// part of the core it belongs to. Names and types in Go follow from those in the schema (goName, goType); the options at
// the top of the schema say where they differ.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run .

// root is the repository, seen from this directory.
const root = "../.."

func main() {
	files, err := generate(filepath.Join(root, "proto"))
	for path, code := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(root, path), code, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "journalgen:", err)
		os.Exit(1)
	}
}
