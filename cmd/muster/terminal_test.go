package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/smithy-go/encoding/cbor"

	"github.com/musterhq/muster/internal/settings"
)

// Text that others have chosen cannot control a terminal: the name of a build, and texts in errors.
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
	report(&out, errors.New("process \x1b]0;x\a\u202e\nis gone"))
	if text := out.String(); !strings.Contains(text, "[2Jgame") || !strings.Contains(text, "]0;x") || strings.ContainsAny(text, "\x1b\a\u009b\u202e") {
		t.Errorf("%q", text)
	}
}

// A name in a line of the log, in either format, controls no terminal that shows it, and a program that reads the line has the name as it is.
func TestHostileNamesInTheLog(t *testing.T) {
	const name = "\x1b[2J\u009bann\u202e\u200f\x7f"
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		newLogger(&out, settings.Settings{LogLevel: "info", LogFormat: format}).Info("player logged in", "player", name, "error", errors.New(name))
		line := out.String()
		if strings.ContainsAny(line, "\x1b\u009b\u202e\u200f") || strings.Count(line, "\n") != 1 {
			t.Errorf("%s: %q", format, line)
		}
		var read struct{ Player, Error string }
		if format == "json" && (json.Unmarshal([]byte(line), &read) != nil || read.Player != name || read.Error != name) {
			t.Errorf("the line says %+v: %s", read, line)
		}
	}
}
