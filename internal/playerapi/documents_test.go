package playerapi_test

import (
	"bytes"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"testing"

	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

var update = flag.Bool("update", false, "write the documents anew")

// The documents in the repository are those that the service gives. `go test ./internal/playerapi -run Documents -update`
// writes them.
func TestDocuments(t *testing.T) {
	s := settings.Defaults()
	s.Listen, s.Data, s.Dev, s.PlayerFlow = "127.0.0.1:0", t.TempDir(), true, true
	x, err := service.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Stop(t.Context())
	for _, realm := range []string{"player", "partner", "operator"} {
		for file, suffix := range map[string]string{"openapi.json": "", "openapi-3.0.json": "-3.0"} {
			answer, err := http.Get("http://" + x.Addr().String() + "/playerflow/v1/" + realm + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatal(answer.Status, err)
			}
			path := "../../docs/player-flow/openapi-" + realm + suffix + ".json"
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what the service gives (%v): go test ./internal/playerapi -run Documents -update", path, err)
			}
		}
	}
}
