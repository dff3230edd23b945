package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/smithy-go/encoding/cbor"
)

// What others have chosen controls no terminal: the name of a build, and texts in errors.
func TestHostileTextInTheTerminal(t *testing.T) {
	builds := cbor.Encode(cbor.Map{"Builds": cbor.List{cbor.Map{
		"BuildId": cbor.String("build-1"), "Name": cbor.String("\x1b[2Jgame"), "Version": cbor.String("\u009b1"), "Status": cbor.String("READY"), "CreationTime": &cbor.Tag{ID: 1, Value: cbor.Float64(1)},
	}}})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		_, _ = w.Write(builds)
	}))
	defer service.Close()
	var out strings.Builder
	if err := run(t.Context(), []string{"build", "list", "--server", service.URL}, []string{"HOME=" + t.TempDir(), "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s"}, &out); err != nil {
		t.Fatal(err)
	}
	report(&out, errors.New("process \x1b]0;x\a\nis gone"))
	if text := out.String(); !strings.Contains(text, "[2Jgame") || !strings.Contains(text, "]0;x") || strings.ContainsAny(text, "\x1b\a\u009b") {
		t.Errorf("%q", text)
	}
}
