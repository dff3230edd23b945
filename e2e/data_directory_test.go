package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/waittest"
)

// refusesToStart starts the service, waits until it has exited, and returns its last output.
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

// A data directory with a missing or changed part is not mistaken for a new installation.
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

	// The same applies to commands that work on the directory of a stopped service.
	must(t, os.RemoveAll(filepath.Join(s.data, "archive")))
	if out, err := s.commandFails("keys", "list", "--data", s.data); err == nil || !strings.Contains(out, "--accept-loss archive") {
		t.Errorf("keys list without the archive: %v, %s", err, out)
	}
	s.args = append(s.args, "--accept-loss", "archive")
	s.start()
	s.untilLogged("a loss in the data directory was accepted")
	s.stop()
	s.start() // the flag is still there, and there is nothing to accept
	s.untilLogged("remove it from --accept-loss")
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

// A truncated log is data loss if the missing part was acknowledged, and the start reports how much is missing.
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

// A flipped bit in the archive loses only the records there, is reported to operators, and can be repaired by a command.
func TestDamagedArchive(t *testing.T) {
	t.Parallel()
	s, admin := startProduction(t, "--ended-linger", "1ms")
	ctx := t.Context()
	queue := "cup"
	_, err := admin.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: &queue})
	must(t, err)
	end := func(id string) {
		t.Helper()
		_, err := admin.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{
			PlacementId: &id, GameSessionQueueName: &queue, MaximumPlayerSessionCount: aws.Int32(2), GameSessionData: aws.String(id + " " + incompressible(16<<10)),
		})
		must(t, err)
		_, err = admin.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: &id})
		must(t, err)
	}
	readable := func(id string) bool {
		_, err := admin.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id}, func(o *gamelift.Options) { o.RetryMaxAttempts = 1 })
		return err == nil
	}
	key, secret := s.key("readonly")
	const recorded = 2 // entries of the audit log: the queue and the key were created
	archived := func(placements int) {
		t.Helper()
		waittest.Until(t, "what ended is in the archive", func() bool {
			out := s.command("archive", "check", "--data", s.data)
			return strings.HasPrefix(out, fmt.Sprint(placements+recorded, " records "))
		})
	}
	for n := range 30 {
		end(fmt.Sprint("first-", n))
	}
	archived(30)
	end("first-30")
	archived(31) // by now the others have left memory: a start would archive them again
	s.stop()
	// The service refuses to start when the newest record is damaged, so that has to be in another table. The store may merge the two, and then one more is needed. A start reads the last block of
	// each table as well: the largest table has more than one.
	var damaged string
	for n := 0; damaged == ""; n++ {
		if n == 10 {
			t.Fatal("no table has first records alone")
		}
		s.start()
		end(fmt.Sprint("last-", n))
		archived(32 + n)
		s.stop()
		tables, err := filepath.Glob(filepath.Join(s.data, "archive", "*.sst"))
		must(t, err)
		var largest []byte
		for _, table := range tables {
			content, err := os.ReadFile(table)
			must(t, err)
			if bytes.Contains(content, []byte("first-")) && !bytes.Contains(content, []byte("last-")) && len(content) > len(largest) {
				damaged, largest = table, content
			}
		}
		if damaged != "" {
			largest[200] ^= 4
			must(t, os.WriteFile(damaged, largest, 0o600))
		}
	}
	s.start()
	lost := 0
	for n := range 30 {
		if !readable(fmt.Sprint("first-", n)) {
			lost++
		}
	}
	if lost == 0 {
		t.Error("nothing was damaged: the test is worth nothing")
	}
	for n := range 5 {
		end(fmt.Sprint("second-", n))
		waittest.Until(t, "a new placement can be read", func() bool { return readable(fmt.Sprint("second-", n)) })
	}
	if status, _, text := sent(t, "GET", s.url()+"/healthz", "", "Authorization", "Basic "+basic(key, secret)); status != 200 || !strings.Contains(text, `"damaged"`) {
		t.Errorf("health for a key: %d %s", status, text)
	}
	if status, _, text := sent(t, "GET", s.url()+"/healthz", ""); status != 200 || strings.Contains(text, "damaged") {
		t.Errorf("health for a stranger: %d %s", status, text)
	}
	s.untilLogged("muster archive repair")
	if out, err := s.commandFails("archive", "check", "--data", s.data); err == nil || !strings.Contains(out, "lost: block") || !strings.Contains(out, "placements") {
		t.Errorf("check: %v, %s", err, out)
	}
	lines := filepath.Join(t.TempDir(), "export.jsonl")
	if out, err := s.commandFails("export", "--data", s.data, "--to", lines, "--kinds", "placements"); err == nil || !strings.Contains(out, "muster archive check") {
		t.Errorf("an export without the damaged places: %v, %s", err, out)
	}
	content, err := os.ReadFile(lines)
	must(t, err)
	if got := bytes.Count(content, []byte("\n")); got < 31-lost {
		t.Errorf("%d placements were exported, want the readable ones, at least %d", got, 31-lost)
	}
	if out := s.command("export", "--data", s.data, "--to", lines, "--kinds", "placements", "--resume"); strings.Contains(out, "damaged") {
		t.Errorf("an export from after the damaged places: %s", out)
	}
	if out, err := s.commandFails("archive", "repair", "--data", s.data); err == nil || !strings.Contains(out, "is in use by pid") {
		t.Errorf("repair beside the service: %v, %s", err, out)
	}
	s.stop()
	twin := filepath.Join(t.TempDir(), "twin")
	must(t, exec.Command("cp", "-a", s.data, twin).Run())
	gone, out, err := os.Pipe()
	must(t, err)
	must(t, gone.Close())
	unread := exec.Command(musterBinary, "archive", "repair", "--data", twin)
	unread.Env, unread.Stdout = cleanEnvironment("HOME="+t.TempDir()), out
	if err := unread.Run(); err == nil {
		t.Error("a repair whose output was lost succeeded")
	}
	must(t, out.Close())
	if recorded, err := os.ReadFile(filepath.Join(twin, "audit-later.jsonl")); !bytes.Contains(recorded, []byte("archive repair")) {
		t.Errorf("a repair whose output was lost has the record %q, %v", recorded, err)
	}
	if out := s.command("archive", "repair", "--data", s.data); !strings.Contains(out, "repaired; the damaged archive is kept as") {
		t.Errorf("repair: %s", out)
	}
	if out := s.command("archive", "check", "--data", s.data); !strings.Contains(out, "nothing is damaged") {
		t.Errorf("check after the repair: %s", out)
	}
	s.start()
	if _, _, text := sent(t, "GET", s.url()+"/healthz", "", "Authorization", "Basic "+basic(key, secret)); strings.Contains(text, "damaged") {
		t.Errorf("health after the repair: %s", text)
	}
	s.untilLogged("a repair dropped")
	for n := range 5 {
		if !readable(fmt.Sprint("second-", n)) {
			t.Errorf("placement second-%d is lost", n)
		}
	}
}

// incompressible returns a text of n characters that a database can hardly compress.
func incompressible(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = 'a' + byte(rand.IntN(26))
	}
	return string(text)
}
