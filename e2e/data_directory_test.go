package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// refusesToStart starts the service, waits until it has given up, and returns what it said at its end.
func (s *service) refusesToStart() string {
	s.t.Helper()
	s.launch()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatal("it started")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 1 {
		s.t.Fatalf("it ended with status %d, want 1", code)
	}
	return s.logs.tail(2)
}

// A part of the data directory that is gone, or whose bytes are others, is not taken for a new installation.
func TestMissingPartsOfTheDataDirectory(t *testing.T) {
	t.Parallel()
	s, admin := startProduction(t)
	location := "custom-home"
	_, err := admin.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: &location})
	must(t, err)
	s.stop()
	for _, part := range []string{"journal", "archive", "cell.secret"} {
		path := filepath.Join(s.data, part)
		kept := filepath.Join(t.TempDir(), part)
		must(t, os.Rename(path, kept))
		if said := s.refusesToStart(); !strings.Contains(said, path+" is missing") || !strings.Contains(said, "--accept-loss "+part) {
			t.Errorf("without %s it says %s", part, said)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Fatalf("the refused start has made %s", part)
		}
		must(t, os.Rename(kept, path))
	}

	secret := filepath.Join(s.data, "cell.secret")
	content, err := os.ReadFile(secret)
	must(t, err)
	content[30] ^= 1
	must(t, os.WriteFile(secret, content, 0o600))
	if said := s.refusesToStart(); !strings.Contains(said, "checksum") || !strings.Contains(said, "--accept-loss cell.secret") {
		t.Errorf("with a flipped bit in the secret it says %s", said)
	}
	content[30] ^= 1
	must(t, os.WriteFile(secret, content, 0o600))

	// Also the commands that work on the directory of a stopped service.
	must(t, os.RemoveAll(filepath.Join(s.data, "archive")))
	if out, err := s.commandFails("keys", "list", "--data", s.data); err == nil || !strings.Contains(out, "--accept-loss archive") {
		t.Errorf("keys list without the archive: %v, %s", err, out)
	}
	s.args = append(s.args, "--accept-loss", "archive")
	s.start()
	if log := s.logs.String(); !strings.Contains(log, "a loss is accepted") {
		t.Error("the log does not tell of the accepted loss")
	}
	s.stop()
	s.start() // the flag is still there, and there is nothing to accept
	if !strings.Contains(s.logs.tail(30), "remove it from --accept-loss") {
		t.Error("no warning that the flag is still there")
	}
	locations, err := admin.ListLocations(t.Context(), &gamelift.ListLocationsInput{})
	must(t, err)
	found := false
	for _, l := range locations.Locations {
		found = found || *l.LocationName == location
	}
	if !found {
		t.Error("the state is not what it was")
	}
}

// A log that was cut is lost data when what is missing was answered, and the start says how much.
func TestLostEndOfTheJournal(t *testing.T) {
	t.Parallel()
	s := startService(t)
	for _, name := range []string{"custom-a", "custom-b", "custom-c"} {
		_, err := s.api().CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: &name})
		must(t, err)
	}
	s.kill()
	logs, err := filepath.Glob(filepath.Join(s.data, "journal", "*.log"))
	must(t, err)
	newest := logs[len(logs)-1]
	content, err := os.ReadFile(newest)
	must(t, err)
	used := len(strings.TrimRight(string(content), "\x00"))
	must(t, os.Truncate(newest, int64(used-50)))
	if said := s.refusesToStart(); !strings.Contains(said, "were on the disk") || !strings.Contains(said, "--accept-loss journal-tail") {
		t.Errorf("it says %s", said)
	}
	s.args = append(s.args, "--accept-loss", "journal-tail")
	s.start()
	s.staysHealthy()
}
