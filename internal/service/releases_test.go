package service

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/settings"
)

const releases = "testdata/releases"

// Data directories of all releases open, with the records that scripts/release-data.sh put into them: docs/upgrade.md. The service was killed, so this release
// replays the journal of the other one, and appends to it.
func TestDataOfReleases(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob(filepath.Join(releases, "*.tar.gz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d releases in %s: %v", len(archives), releases, err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			t.Parallel()
			s := settings.Defaults()
			s.Data, s.Listen, s.Dev, s.VirtualClock, s.PlayerFlow = t.TempDir(), "127.0.0.1:0", true, true, true
			made := unpack(t, archive, s.Data)
			for run := range 3 { // the first run replays, the second one reads the first one's snapshot, and both write
				openRelease(t, s, made.Add(time.Duration(run+1)*time.Hour), run)
			}
		})
	}
}

// Every release of the changelog has left its data.
func TestReleasesHaveData(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\]`).FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		t.Fatal("CHANGELOG.md names no release")
	}
	for _, release := range found {
		if _, err := os.Stat(filepath.Join(releases, release[1]+".tar.gz")); err != nil {
			t.Errorf("%v: make it with the programs of the release: scripts/release-data.sh %s BIN", err, release[1])
		}
	}
}

// unpack extracts an archive, and returns the time of its latest file.
func unpack(t *testing.T, archive, dir string) (made time.Time) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return made
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.After(made) {
			made = h.ModTime
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, content, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// openRelease starts the service on the data at a time, reads all records, and makes changes.
func openRelease(t *testing.T, s settings.Settings, at time.Time, run int) {
	t.Helper()
	o := NewOptions(s, slog.New(slog.DiscardHandler), nil)
	o.Clock = engine.NewClock(at)
	x, err := StartWith(t.Context(), o)
	if err != nil {
		t.Fatalf("run %d: %v", run+1, err)
	}
	defer func() {
		if err := x.Stop(t.Context()); err != nil {
			t.Errorf("run %d: stop: %v", run+1, err)
		}
	}()
	c := gamelift.New(gamelift.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + x.Addr().String()), Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), RetryMaxAttempts: 1,
	})
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("run %d: %s is %q, want %q", run+1, what, got, want)
		}
	}
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("run %d: %v", run+1, err)
		}
	}

	fleets, err := c.DescribeFleetAttributes(ctx, &gamelift.DescribeFleetAttributesInput{})
	ok(err)
	if len(fleets.FleetAttributes) != 1 {
		t.Fatalf("run %d: %d fleets, want 1", run+1, len(fleets.FleetAttributes))
	}
	fleet := fleets.FleetAttributes[0]
	check("the fleet", aws.ToString(fleet.Name)+" "+string(fleet.Status), "live ACTIVE")
	tags, err := c.ListTagsForResource(ctx, &gamelift.ListTagsForResourceInput{ResourceARN: fleet.FleetArn})
	ok(err)
	if len(tags.Tags) != 1 || *tags.Tags[0].Value != "live" {
		t.Errorf("run %d: the fleet's tags are %+v, want stage=live", run+1, tags.Tags)
	}
	computes, err := c.ListCompute(ctx, &gamelift.ListComputeInput{FleetId: fleet.FleetId})
	ok(err)
	if len(computes.ComputeList) != 1 || *computes.ComputeList[0].ComputeName != "berlin-1" {
		t.Errorf("run %d: the computes are %+v, want berlin-1", run+1, computes.ComputeList)
	}
	queues, err := c.DescribeGameSessionQueues(ctx, &gamelift.DescribeGameSessionQueuesInput{Names: []string{"europe"}})
	ok(err)
	check("the queue's data", aws.ToString(queues.GameSessionQueues[0].CustomEventData), "eu")
	aliases, err := c.ListAliases(ctx, &gamelift.ListAliasesInput{Name: aws.String("stable")})
	ok(err)
	check("the alias' fleet", aws.ToString(aliases.Aliases[0].RoutingStrategy.FleetId), *fleet.FleetId)
	sets, err := c.DescribeMatchmakingRuleSets(ctx, &gamelift.DescribeMatchmakingRuleSetsInput{Names: []string{"duel"}})
	ok(err)
	if !strings.Contains(*sets.RuleSets[0].RuleSetBody, "maxDistance") {
		t.Errorf("run %d: the rule set is %s", run+1, *sets.RuleSets[0].RuleSetBody)
	}

	session := func(id string) types.GameSession {
		t.Helper()
		arn := "arn:aws:gamelift:us-east-1::gamesession/" + *fleet.FleetId + "/custom-berlin/" + id
		out, err := c.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: &arn})
		ok(err)
		if len(out.GameSessions) != 1 {
			t.Fatalf("run %d: %d game sessions with the id %s, want 1", run+1, len(out.GameSessions), id)
		}
		return out.GameSessions[0]
	}
	ended := session("first-game") // from the archive
	check("the ended game session", aws.ToString(ended.Name)+" "+string(ended.Status)+" "+*ended.GameProperties[0].Value, "ended TERMINATED desert")
	players, err := c.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{PlayerId: aws.String("ann")})
	ok(err)
	if len(players.PlayerSessions) != 1 || aws.ToString(players.PlayerSessions[0].PlayerData) != "veteran" {
		t.Errorf("run %d: the player sessions of ann are %+v, want one with her data", run+1, players.PlayerSessions)
	}
	if _, err := c.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{
		PlacementId: aws.String("placed"), GameSessionQueueName: aws.String("europe"), MaximumPlayerSessionCount: aws.Int32(4),
	}); err == nil {
		t.Errorf("run %d: the id of an ended placement can be used again", run+1)
	}
	for id, want := range map[string]types.GameSessionPlacementState{"placed": "FULFILLED", "stopped": "CANCELLED"} {
		out, err := c.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id})
		ok(err)
		check("the placement "+id, string(out.GameSessionPlacement.Status), string(want))
	}
	tickets, err := c.DescribeMatchmaking(ctx, &gamelift.DescribeMatchmakingInput{TicketIds: []string{"waiting", "gone"}})
	ok(err)
	status := map[string]string{}
	for _, ticket := range tickets.TicketList {
		status[*ticket.TicketId] = string(ticket.Status)
	}
	check("the ticket that waits", status["waiting"], "SEARCHING")
	check("the ticket that was stopped", status["gone"], "CANCELLED")

	keys := map[string]bool{}
	all, err := x.Keys().List(ctx)
	ok(err)
	for i := range all {
		keys[all[i].Name] = all[i].Works()
	}
	if works, known := keys["ops"]; !known || !works {
		t.Errorf("run %d: the access key ops does not work", run+1)
	}
	if works, known := keys["revoked"]; !known || works {
		t.Errorf("run %d: the access key that was revoked is known: %v, and works: %v", run+1, known, works)
	}
	eve, err := http.Post("http://"+x.Addr().String()+"/playerflow/v1/operator/Operator.GetPlayer", "application/json", strings.NewReader(`{"player_id": "eve", "reason": "a test"}`))
	ok(err)
	defer eve.Body.Close()
	body, err := io.ReadAll(eve.Body)
	ok(err)
	if !strings.Contains(string(body), `"PARTY_ID":"pty-`) {
		t.Errorf("run %d: eve is not in her party: %s", run+1, body)
	}

	name := "custom-" + string(rune('a'+run))
	_, err = c.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: &name})
	ok(err)
	locations, err := c.ListLocations(ctx, &gamelift.ListLocationsInput{Filters: []types.LocationFilter{types.LocationFilterCustom}})
	ok(err)
	if n := len(locations.Locations); n != 3+run {
		t.Errorf("run %d: %d locations, want %d", run+1, n, 3+run)
	}
}
