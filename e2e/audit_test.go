package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/musterhq/muster/internal/archive"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/audit"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/waittest"
)

// TestAuditLog: administrators' changes have entries that survive kill -9, everyday operations of others have none, and refused attempts are counted.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	s, _ := startProduction(t, "--ended-linger", "1ms")
	ctx := t.Context()
	id, secret := s.key("admin")
	admin := s.apiWith(id, secret)
	backendID, backendSecret := s.key("backend")
	backend := s.apiWith(backendID, backendSecret)
	because := func(reason string) func(*gamelift.Options) {
		return func(o *gamelift.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(audit.ReasonHeader, reason))
		}
	}
	entries := func(args ...string) (all []audit.Document) {
		t.Helper()
		out, err := s.remote(id, secret, append([]string{"audit", "--json", "--limit", "0"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(out) {
			var e audit.Document
			must(t, json.Unmarshal([]byte(line), &e))
			all = append(all, e)
		}
		return all
	}

	queue := "cup"
	_, err := admin.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: &queue, TimeoutInSeconds: aws.Int32(60)}, because("the cup begins"))
	must(t, err)
	_, err = admin.UpdateGameSessionQueue(ctx, &gamelift.UpdateGameSessionQueueInput{Name: &queue, TimeoutInSeconds: aws.Int32(120)})
	must(t, err)
	s.kill()
	s.start()

	for n := range 3 { // what a backend does
		placement := "placement-" + string(rune('a'+n))
		_, err = backend.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{PlacementId: &placement, GameSessionQueueName: &queue, MaximumPlayerSessionCount: aws.Int32(2)})
		must(t, err)
	}
	once := func(o *gamelift.Options) { o.RetryMaxAttempts = 1 }
	if _, err = backend.DeleteGameSessionQueue(ctx, &gamelift.DeleteGameSessionQueueInput{Name: &queue}, once); err == nil {
		t.Fatal("a backend deleted a queue")
	}
	if _, err = admin.DeleteGameSessionQueue(ctx, &gamelift.DeleteGameSessionQueueInput{Name: &queue}, once, because(strings.Repeat("x", 201))); err == nil || !strings.Contains(err.Error(), "reason") {
		t.Errorf("a reason of 201 characters: %v", err)
	}
	answer, err := http.Get(s.url() + "/operator/v1/keys") // without credentials
	must(t, err)
	answer.Body.Close()
	waittest.Until(t, "refused attempts have entries", func() bool { return len(entries("--refused")) >= 2 })

	all := entries("--what", "cup")
	if len(all) != 2 || all[1].What != "CreateGameSessionQueue" || all[1].Reason != "the cup begins" || all[1].Who != id || all[1].Door != audit.DoorAPI || all[1].Address != "127.0.0.1" ||
		all[0].What != "UpdateGameSessionQueue" || len(all[0].Changes) != 1 || all[0].Changes[0] != (audit.Change{Field: "Timeout", Before: "1m0s", After: "2m0s"}) {
		t.Errorf("the entries of the queue are %+v", all)
	}
	if all := entries("--what", "Placement"); len(all) > 0 {
		t.Errorf("what a backend does is in the log: %+v", all)
	}
	denied := entries("--refused", "--who", backendID)
	if len(denied) != 1 || denied[0].Outcome != "refused: AccessDeniedException" || denied[0].What != "DeleteGameSessionQueue" {
		t.Errorf("the attempt of the backend is %+v", denied)
	}
	if out, err := s.remote(backendID, backendSecret, "audit"); err == nil {
		t.Errorf("a backend reads the log: %s", out)
	}

	whole, err := s.remote(id, secret, "audit", "verify")
	anchor := regexp.MustCompile(`anchor  (\S+)`).FindStringSubmatch(whole)
	if err != nil || anchor == nil || !strings.Contains(whole, "is intact") {
		t.Fatalf("%v: %s", err, whole)
	}
	if out, err := s.remote(id, secret, "audit", "verify", "--anchor", anchor[1]); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := s.remote(id, secret, "audit", "verify", "--anchor", "1:"+strings.Repeat("00", 32)); err == nil || !strings.Contains(out, "entry 1 has another hash") {
		t.Errorf("another hash: %v: %s", err, out)
	}
}

// TestAuditLogShowsTampering: an entry that was changed on the disk of a stopped service, with all its checksums, is detected, and so is the gap of a removed entry.
func TestAuditLogShowsTampering(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *archive.Record)
		want   string
	}{
		"altered": {func(r *archive.Record) {
			e, err := domainaudit.Decode(r.Data)
			must(t, err)
			e.By.Principal = "MUSTANOTHERPERSON"
			r.Data = e.Stored()
		}, "entry 2 differs from what entry 3 says of it"},
		"removed": {func(r *archive.Record) { r.Group = "" }, "entry 2 is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := startProduction(t, "--ended-linger", "1ms")
			id, secret := s.key("admin") // entry 1
			archived := func(records string, locations ...string) {
				for _, location := range locations {
					_, err := s.apiWith(id, secret).CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: &location})
					must(t, err)
				}
				waittest.Until(t, "the entries are in the archive", func() bool {
					return strings.HasPrefix(s.command("archive", "check", "--data", s.data), records+" records ")
				})
			}
			archived("3", "custom-a", "custom-b")
			archived("4", "custom-c") // by now the first three have left memory: a start would archive them again
			s.stop()
			a, err := archivepebble.Open(archivepebble.Options{Dir: filepath.Join(s.data, "archive")})
			must(t, err)
			r, ok, err := a.Get(t.Context(), archive.AuditEntry, domainaudit.ArchiveID(2))
			if err != nil || !ok {
				t.Fatalf("entry 2: %t, %v", ok, err)
			}
			c.change(&r)
			must(t, a.Put(t.Context(), []archive.Record{r}))
			must(t, a.Close())
			s.start()
			if out, err := s.remote(id, secret, "audit", "verify"); err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v: %s\nwant %q", err, out, c.want)
			}
		})
	}
}
