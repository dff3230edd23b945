package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
)

// A backup is restored in two passes, so a stream is refused, with the reason.
func TestRestoreFromAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	from := []string{"-"}
	if runtime.GOOS == "linux" {
		from = append(from, fmt.Sprintf("/dev/fd/%d", r.Fd())) // as of a process substitution
	}
	for _, name := range from {
		err := run(t.Context(), []string{"restore", name, "--data", t.TempDir()}, []string{"HOME=" + t.TempDir()}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "reads a backup twice") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
