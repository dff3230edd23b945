package service

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/settings"
)

// Without an access key every request is refused: an operator who starts the service for the first time should not have to find
// out from the clients.
func TestStartSaysThatKeysAreMissing(t *testing.T) {
	s := settings.Defaults()
	s.Listen, s.Data = "127.0.0.1:0", t.TempDir()
	if said := startAndStop(t, s); !strings.Contains(said, "muster keys create") {
		t.Errorf("without keys the log says %q", said)
	}
	keys, err := keyring.OpenOffline(t.Context(), s.Data, nil, cell.DefaultConfig())
	if err == nil {
		_, err = keys.Create(t.Context(), access.Actor{}, keyring.New{Role: access.Admin})
		err = errors.Join(err, keys.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if said := startAndStop(t, s); strings.Contains(said, "muster keys create") {
		t.Errorf("with a key the log says %q", said)
	}
}

// startAndStop starts and stops the service, and returns its log.
func startAndStop(t *testing.T, s settings.Settings) string {
	t.Helper()
	var log bytes.Buffer
	x, err := Start(t.Context(), s, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return log.String()
}
