package gamelift

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/engine"
)

// A full disk stops the engine. Callers must be told that the service is the cause, and why.
func TestStoppedEngineIsUnavailable(t *testing.T) {
	var lines logLines
	h := NewHandler(&Service{}, Config{Keys: keysForTest(), Log: slog.New(slog.NewTextHandler(&lines, nil))})
	replace(t, h, serve("ListFleets", look, func(*Service, context.Context, *gamelift.ListFleetsInput) (*gamelift.ListFleetsOutput, error) {
		return nil, fmt.Errorf("%w: append to the journal: no space left on device", engine.ErrStopped)
	}))
	got := jsonClient{url: startServer(t, h), key: keysForTest()["AKADMIN"]}.call(t, "ListFleets", "{}")
	if got.status != http.StatusServiceUnavailable || got.body["__type"] != codeUnavailable || !strings.Contains(got.raw, "no space left") {
		t.Errorf("got %d %s", got.status, got.raw)
	}
	if !strings.Contains(lines.String(), got.header.Get("X-Amzn-Requestid")) {
		t.Errorf("the log %q does not tell", lines.String())
	}
}
