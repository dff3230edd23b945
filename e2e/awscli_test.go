package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// cli runs AWS CLI commands as a user of a service.
type cli struct {
	*service
	env   []string
	calls *calls
}

func newCLI(s *service, env ...string) *cli {
	s.t.Helper()
	env = cleanEnvironment(append([]string{
		"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "HOME=" + s.t.TempDir(),
		"AWS_MAX_ATTEMPTS=1", "AWS_PAGER=", "LC_ALL=C.UTF-8"}, env...)...)
	return &cli{s, env, newCalls()}
}

// in returns the CLI for a part of a test.
func (c *cli) in(t *testing.T) *cli { return &cli{c.service.in(t), c.env, c.calls} }

func (c *cli) run(args ...string) (stdout, stderr string, err error) {
	c.t.Helper()
	stdout, stderr, err = c.aws(append([]string{"gamelift"}, args...)...)
	code := ""
	if err != nil {
		code = stderr
		if failed := cliError.FindStringSubmatch(code); failed != nil {
			code = failed[1]
		}
	}
	c.calls.note(operationName(args[0]), code)
	return stdout, stderr, err
}

// aws runs a command of any of AWS's services that Muster has.
func (c *cli) aws(args ...string) (stdout, stderr string, err error) {
	c.t.Helper()
	awsCLI(c.t)
	var files []*os.File
	for _, name := range []string{os.DevNull, filepath.Join(c.t.TempDir(), "stdout"), filepath.Join(c.t.TempDir(), "stderr")} {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		must(c.t, err)
		defer f.Close()
		files = append(files, f)
	}
	code, err := awsCommand{append([]string{"--endpoint-url", c.url(), "--region", region, "--output", "json"}, args...), c.env, "."}.run(awsCommands.address, files...)
	must(c.t, err)
	if code != 0 {
		err = fmt.Errorf("exit status %d", code)
	}
	for i, text := range []*string{&stdout, &stderr} {
		content, err := os.ReadFile(files[i+1].Name())
		must(c.t, err)
		*text = string(content)
	}
	return stdout, stderr, err
}

// ok runs a command that must succeed and returns its answer.
func (c *cli) ok(args ...string) object {
	c.t.Helper()
	out, errs, err := c.run(args...)
	if err != nil {
		c.t.Fatalf("aws gamelift %s: %v\n%s", strings.Join(args, " "), err, errs)
	}
	answer := object{}
	if strings.TrimSpace(out) != "" {
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			c.t.Fatalf("aws gamelift %s: %v in %s", strings.Join(args, " "), err, out)
		}
	}
	return answer
}

// fails runs a command that must fail with the given error.
func (c *cli) fails(code string, args ...string) {
	c.t.Helper()
	out, errs, err := c.run(args...)
	if err == nil || !strings.Contains(errs, "("+code+")") {
		c.t.Errorf("aws gamelift %s: got %v\n%s%s\nwant %s", strings.Join(args, " "), err, out, errs, code)
	}
}

// object is a JSON object whose members are addressed by a path of names; a list stands for its first element.
type object map[string]any

func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, name := range path {
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[0]
		}
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (o object) text(path ...string) string { s, _ := o.at(path...).(string); return s }

func (o object) count(path ...string) int { l, _ := o.at(path...).([]any); return len(l) }

// expect compares members of an answer, named by a path with dots.
func (c *cli) expect(o object, want map[string]any) {
	c.t.Helper()
	for path, w := range want {
		if got := o.at(strings.Split(path, ".")...); got != w {
			c.t.Errorf("%s: got %v (%T), want %v", path, got, got, w)
		}
	}
}

// The CLI's share of the operations: the walk-through of the README, the guide to queues, and the stories of operators.
func TestOperationsWithAWSCLI(t *testing.T) {
	t.Parallel()
	s := startService(t, "--virtual-clock") // so that the duration of commands does not matter
	c := newCLI(s)
	t.Run("together", func(t *testing.T) {
		t.Run("walk-through", func(t *testing.T) {
			t.Parallel()
			// Its game server is told its deadline. The others' virtual clock has stood still while they waited for their turn.
			walkThrough(t, &cli{startService(t, "--virtual-clock"), c.env, c.calls})
		})
		t.Run("guide to queues", func(t *testing.T) { t.Parallel(); guideToQueues(t, c.in(t)) })
		tellStories(t, s, c, "aliases", "builds", "game-servers")
	})
	t.Log("the AWS CLI:", c.calls.summary())
}

// walkThrough is the README's walk-through, typed manually.
func walkThrough(t *testing.T, c *cli) {
	s := c.service

	location := c.ok("create-location", "--location-name", "custom-home")
	c.expect(location, map[string]any{"Location.LocationName": "custom-home"})
	created := c.ok("create-fleet", "--name", "dev", "--compute-type", "ANYWHERE", "--locations", "Location=custom-home")
	fleet := created.text("FleetAttributes", "FleetId")
	c.expect(created, map[string]any{
		"FleetAttributes.Name": "dev", "FleetAttributes.ComputeType": "ANYWHERE", "FleetAttributes.Status": "ACTIVE",
		"FleetAttributes.NewGameSessionProtectionPolicy":           "NoProtection",
		"FleetAttributes.CertificateConfiguration.CertificateType": "DISABLED",
		"LocationStates.Location":                                  "custom-home",
		"LocationStates.Status":                                    "ACTIVE",
	})
	wantPrefix(t, "FleetArn", created.text("FleetAttributes", "FleetArn"), "arn:aws:gamelift:us-east-1:", ":fleet/"+fleet)
	compute := c.ok("register-compute", "--compute-name", "DesktopPC", "--fleet-id", fleet, "--ip-address", "127.0.0.1", "--location", "custom-home")
	c.expect(compute, map[string]any{
		"Compute.FleetId": fleet, "Compute.ComputeName": "DesktopPC", "Compute.IpAddress": "127.0.0.1",
		"Compute.ComputeStatus": "Active", "Compute.Location": "custom-home", "Compute.GameLiftServiceSdkEndpoint": s.ws(),
	})
	token := c.ok("get-compute-auth-token", "--fleet-id", fleet, "--compute-name", "DesktopPC")
	c.expect(token, map[string]any{"FleetId": fleet, "ComputeName": "DesktopPC"})
	if again := c.ok("get-compute-auth-token", "--fleet-id", fleet, "--compute-name", "DesktopPC"); again.text("AuthToken") != token.text("AuthToken") {
		t.Error("the second token is another one, while the first still lives")
	}

	p := &place{service: s, fleet: fleet, location: "custom-home", compute: "DesktopPC", token: token.text("AuthToken")}
	server := p.startArena()
	server.until("ready for a game session")

	var session object
	waittest.Until(t, "the server process to be free", func() bool {
		out, errs, err := c.run("create-game-session", "--fleet-id", fleet, "--name", "Debug",
			"--maximum-player-session-count", "4", "--location", "custom-home")
		if err != nil && strings.Contains(errs, "FleetCapacityExceededException") {
			return false
		}
		if err != nil {
			t.Fatal(errs)
		}
		must(t, json.Unmarshal([]byte(out), &session))
		return true
	})
	arn := session.text("GameSession", "GameSessionId")
	wantPrefix(t, "GameSessionId", arn, "arn:aws:gamelift:us-east-1::gamesession/"+fleet+"/custom-home/gsess-")
	c.expect(session, map[string]any{
		"GameSession.Status": "ACTIVATING", "GameSession.FleetId": fleet, "GameSession.Name": "Debug",
		"GameSession.MaximumPlayerSessionCount": 4.0, "GameSession.CurrentPlayerSessionCount": 0.0,
		"GameSession.PlayerSessionCreationPolicy": "ACCEPT_ALL", "GameSession.Location": "custom-home",
	})
	server.until("game session active")
	waittest.Until(t, "the session to be ACTIVE", func() bool {
		return c.ok("describe-game-sessions", "--game-session-id", arn).text("GameSessions", "Status") == "ACTIVE"
	})

	player := c.ok("create-player-session", "--game-session-id", arn, "--player-id", "PlayerOne")
	psess := player.text("PlayerSession", "PlayerSessionId")
	wantPrefix(t, "PlayerSessionId", psess, "psess-")
	c.expect(player, map[string]any{
		"PlayerSession.Status": "RESERVED", "PlayerSession.PlayerId": "PlayerOne", "PlayerSession.GameSessionId": arn,
		"PlayerSession.FleetId": fleet, "PlayerSession.IpAddress": "127.0.0.1",
	})
	if _, ok := player.at("PlayerSession", "Port").(float64); !ok {
		t.Errorf("Port: got %v, want the server's", player.at("PlayerSession", "Port"))
	}

	one := server.join(psess, "Ann")
	friend := c.ok("describe-player-sessions", "--player-id", "PlayerOne")
	c.expect(friend, map[string]any{"PlayerSessions.Status": "ACTIVE", "PlayerSessions.GameSessionId": arn, "PlayerSessions.PlayerSessionId": psess})
	c.expect(c.ok("describe-game-sessions", "--fleet-id", fleet), map[string]any{"GameSessions.CurrentPlayerSessionCount": 1.0})
	must(t, one.Leave())
	s.untilPlayer(psess, types.PlayerSessionStatusCompleted)

	for _, look := range []struct {
		args []string
		want map[string]any
	}{
		{[]string{"list-fleets"}, nil},
		{[]string{"list-locations"}, nil},
		{[]string{"describe-fleet-attributes"}, nil},
		{[]string{"describe-fleet-attributes", "--fleet-ids", fleet}, map[string]any{"FleetAttributes.Status": "ACTIVE"}},
		{[]string{"describe-fleet-location-attributes", "--fleet-id", fleet}, map[string]any{"LocationAttributes.LocationState.Status": "ACTIVE"}},
		{[]string{"describe-fleet-capacity", "--fleet-ids", fleet}, map[string]any{"FleetCapacity.FleetId": fleet}},
		{[]string{"describe-fleet-utilization", "--fleet-ids", fleet}, map[string]any{"FleetUtilization.ActiveGameSessionCount": 1.0, "FleetUtilization.ActiveServerProcessCount": 1.0}},
		{[]string{"describe-fleet-events", "--fleet-id", fleet}, map[string]any{"Events.ResourceId": fleet}},
		{[]string{"describe-compute", "--fleet-id", fleet, "--compute-name", "DesktopPC"}, map[string]any{"Compute.ComputeName": "DesktopPC"}},
		{[]string{"list-compute", "--fleet-id", fleet}, map[string]any{"ComputeList.ComputeName": "DesktopPC"}},
		{[]string{"describe-game-session-details", "--game-session-id", arn}, map[string]any{"GameSessionDetails.ProtectionPolicy": "NoProtection", "GameSessionDetails.GameSession.GameSessionId": arn}},
		{[]string{"update-game-session", "--game-session-id", arn, "--name", "Renamed", "--player-session-creation-policy", "DENY_ALL"}, map[string]any{"GameSession.Name": "Renamed", "GameSession.PlayerSessionCreationPolicy": "DENY_ALL"}},
		{[]string{"search-game-sessions", "--fleet-id", fleet, "--filter-expression", "gameSessionName = 'Renamed' AND hasAvailablePlayerSessions=false", "--sort-expression", "playerSessionCount DESC"}, map[string]any{"GameSessions.GameSessionId": arn}},
		{[]string{"list-tags-for-resource", "--resource-arn", created.text("FleetAttributes", "FleetArn")}, nil},
	} {
		c.expect(c.ok(look.args...), look.want)
	}
	listed := func() bool {
		ids, _ := c.ok("list-fleets").at("FleetIds").([]any)
		return slices.Contains(ids, any(fleet))
	}
	if !listed() {
		t.Errorf("list-fleets: %s is not there", fleet)
	}
	if n := c.ok("list-locations", "--filters", "CUSTOM").count("Locations"); n < 1 {
		t.Errorf("list-locations: got %d custom locations", n)
	}

	c.fails("InvalidGameSessionStatusException", "create-player-session", "--game-session-id", arn, "--player-id", "PlayerTwo") // DENY_ALL
	c.fails("NotFoundException", "describe-player-sessions", "--player-session-id", "psess-00000000-0000-0000-0000-000000000000")
	c.fails("NotFoundException", "describe-game-sessions", "--game-session-id", arn+"x")
	c.fails("InvalidRequestException", "search-game-sessions", "--fleet-id", fleet, "--filter-expression", "gameSessionName = Renamed")
	c.fails("ConflictException", "create-location", "--location-name", "custom-home")
	c.fails("InvalidRequestException", "create-location", "--location-name", "custom-a b")
	c.fails("FleetCapacityExceededException", "create-game-session", "--fleet-id", fleet, "--maximum-player-session-count", "4", "--location", "custom-home")

	// The CLI does not have this operation; the SDK for Go does.
	if _, errs, _ := c.run("terminate-game-session", "--game-session-id", arn, "--termination-mode", "TRIGGER_ON_PROCESS_TERMINATE"); !strings.Contains(errs, "Invalid choice") && !strings.Contains(errs, "invalid choice") {
		t.Errorf("this CLI knows terminate-game-session: %s", errs)
	}
	if _, err := s.api().TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: aws.String(arn), TerminationMode: types.TerminationModeTriggerOnProcessTerminate,
	}); err != nil {
		t.Error(err)
	}
	if code := server.exitCode(); code != 0 {
		t.Errorf("the game server exited with %d, want 0\n%s", code, server.logs)
	}
	waittest.Until(t, "the session to be TERMINATED", func() bool {
		return c.ok("describe-game-sessions", "--game-session-id", arn).text("GameSessions", "Status") == "TERMINATED"
	})

	c.ok("deregister-compute", "--fleet-id", fleet, "--compute-name", "DesktopPC")
	c.ok("delete-fleet", "--fleet-id", fleet)
	waittest.Until(t, "the fleet to be gone", func() bool { return !listed() })
	c.ok("delete-location", "--location-name", "custom-home")
}

func wantPrefix(t *testing.T, what, got, prefix string, rest ...string) {
	t.Helper()
	if !strings.HasPrefix(got, prefix) {
		t.Errorf("%s: got %q, want it to begin with %q", what, got, prefix)
	}
	for _, part := range rest {
		if !strings.HasSuffix(got, part) {
			t.Errorf("%s: got %q, want it to end with %q", what, got, part)
		}
	}
}
