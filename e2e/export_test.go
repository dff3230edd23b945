package e2e

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/waittest"
)

// A series of exports contains every acknowledged placement exactly once, even if some of the exports are killed.
func TestExport(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := startService(t, "--ended-linger", "1ms")
	_, err := s.client.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: aws.String("cup")})
	must(t, err)
	var want []string
	play := func(n int) {
		t.Helper()
		for range n {
			id := fmt.Sprintf("placement-%04d", len(want))
			_, err := s.client.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{GameSessionQueueName: aws.String("cup"), MaximumPlayerSessionCount: aws.Int32(2), PlacementId: &id})
			must(t, err)
			_, err = s.client.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: &id})
			must(t, err)
			want = append(want, id)
		}
	}
	dir := filepath.Join(t.TempDir(), "export") + "/"
	args := []string{"export", "--data", s.data, "--to", dir, "--kinds", "placements,game_sessions", "--resume"}
	exported := func() (ids []string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "placements", "*.jsonl.gz"))
		must(t, err)
		slices.Sort(files)
		for _, name := range files {
			f, err := os.Open(name)
			must(t, err)
			in, err := gzip.NewReader(f)
			must(t, err)
			for lines := bufio.NewScanner(in); lines.Scan(); {
				var x struct{ Kind, ID, Queue, Status string }
				must(t, json.Unmarshal(lines.Bytes(), &x))
				if x.Kind != "placement" || x.Queue != "cup" || x.Status != "CANCELLED" {
					t.Errorf("exported %s", lines.Text())
				}
				ids = append(ids, x.ID)
			}
			must(t, f.Close())
		}
		return ids
	}
	for range 3 {
		play(40)
		slow := exec.Command(musterBinary, append(args, "--rate", "64B")...)
		slow.Env = cleanEnvironment("HOME=" + t.TempDir())
		must(t, slow.Start())
		time.Sleep(200 * time.Millisecond) // it may be anywhere
		must(t, slow.Process.Kill())
		_ = slow.Wait() // it was killed
		waittest.Until(t, "all placements to be exported", func() bool {
			out, err := s.commandFails(args...)
			if err != nil && !strings.Contains(out, "another export is in progress") { // the service may not have noticed yet that the other one is gone
				t.Fatalf("%v: %s", err, out)
			}
			return len(exported()) >= len(want)
		})
	}
	if got := exported(); !slices.Equal(got, want) {
		t.Errorf("exported %q, want %q", got, want)
	}
	if out, err := s.commandFails(args[:len(args)-1]...); err == nil || !strings.Contains(out, "--resume continues it") {
		t.Errorf("without --resume: %v, %s", err, out)
	}
	if out := s.command("export", "--data", s.data, "--to", "-", "--kinds", "placements", "--since", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)); strings.Count(out, `"kind":"placement"`) != len(want) {
		t.Errorf("the standard output has %s", out)
	}
	cursor := filepath.Join(dir, "cursor.json")
	text, err := os.ReadFile(cursor)
	must(t, err)
	var c map[string]any
	must(t, json.Unmarshal(text, &c))
	c["until"] = time.Now().Add(-60 * 24 * time.Hour) // as if the last run had been then
	text, err = json.Marshal(c)
	must(t, err)
	must(t, os.WriteFile(cursor, text, 0o600))
	if out, err := s.commandFails(args...); err == nil || !strings.Contains(out, "are missing: the last run ended too long ago") {
		t.Errorf("after 60 days: %v, %s", err, out)
	}
	if out := s.command(args...); strings.Contains(out, "missing") {
		t.Errorf("the next run: %s", out)
	}
}
