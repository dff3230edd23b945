package mustertest_test

import (
	"context"
	"io"
	"os"
	"slices"
	"testing"
)

// exampleT stands in for a *testing.T, which examples are not given.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func newT() (t testing.TB, finish func()) {
	e := &exampleT{}
	return e, func() {
		for _, cleanup := range slices.Backward(e.cleanups) {
			cleanup()
		}
	}
}

func (e *exampleT) Helper()                      {}
func (e *exampleT) Name() string                 { return "Example" }
func (e *exampleT) Context() context.Context     { return context.Background() }
func (e *exampleT) Output() io.Writer            { return io.Discard }
func (e *exampleT) Cleanup(f func())             { e.cleanups = append(e.cleanups, f) }
func (e *exampleT) Fatal(args ...any)            { panic(args) }
func (e *exampleT) Fatalf(_ string, args ...any) { panic(args) }
func (e *exampleT) Errorf(_ string, args ...any) { panic(args) }

func (e *exampleT) TempDir() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	e.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
