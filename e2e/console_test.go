package e2e

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// A real browser signs in to the console, looks at every page, and ends a game session: nothing is inaccessible, nothing comes from elsewhere, what players choose stays text, and open pages follow
// the state. The steps are in console/browse.js. CONSOLE_SHOTS names a directory for screenshots.
func TestConsoleInABrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	s, admin := startProduction(t)
	s.client = admin
	p := s.prepare()
	_, err := admin.CreateGameSessionQueue(t.Context(), &gamelift.CreateGameSessionQueueInput{Name: aws.String("ranked")})
	must(t, err)
	build, err := admin.CreateBuild(t.Context(), &gamelift.CreateBuildInput{Name: aws.String("arena"), OperatingSystem: types.OperatingSystemAmazonLinux2023})
	must(t, err)
	s.remember(p.fleet, p.location)
	s.client = admin
	first := p.dial("process-1", "")
	must(t, first.Activate(t.Context(), 7777))
	must(t, first.Heartbeat(t.Context(), true))
	const name = `<script>alert(1)</script><img src=x onerror=alert(2)>`
	create := func(name string, b *bareServer) string {
		id := *p.createWhenFree(&gamelift.CreateGameSessionInput{Name: &name, MaximumPlayerSessionCount: aws.Int32(4)}).GameSessionId
		for push := range b.pushes {
			if push.action == "CreateGameSession" {
				break
			}
		}
		must(t, b.ActivateGameSession(t.Context(), id))
		return id
	}
	game := create(name, first)
	_, err = admin.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: &game, PlayerId: aws.String("ann")})
	must(t, err)
	second := p.dial("process-2", "")
	must(t, second.Activate(t.Context(), 7778))
	must(t, second.Heartbeat(t.Context(), true))
	stayHealthy(t, first, second)

	_, err = admin.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("duel-rules"), RuleSetBody: aws.String(`{
  "ruleLanguageVersion": "1.0",
  "playerAttributes": [{"name": "skill", "type": "number", "default": 1000}],
  "teams": [{"name": "one", "minPlayers": 1, "maxPlayers": 1}, {"name": "two", "minPlayers": 1, "maxPlayers": 1}]
}`)})
	must(t, err)
	_, err = admin.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("duel"), RuleSetName: aws.String("duel-rules"), FlexMatchMode: types.FlexMatchModeStandalone, AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
	})
	must(t, err)
	for _, player := range []string{"bob", "cyd"} {
		_, err := admin.StartMatchmaking(t.Context(), &gamelift.StartMatchmakingInput{ConfigurationName: aws.String("duel"), Players: []types.Player{{PlayerId: aws.String(player)}}})
		must(t, err)
	}

	id, secret := s.key("readonly")
	runID, runSecret := s.key("backend")
	adminID, adminSecret := s.key("admin")
	_, tail, _ := strings.Cut(game, ":gamesession/")
	env := []string{"MUSTER_URL=" + s.url(), "KEY=" + id, "SECRET=" + secret, "FLEET=" + p.fleet, "BUILD=" + *build.Build.BuildId, "GAME=" + tail, "NAME=" + name, "ADMIN_KEY=" + adminID, "ADMIN_SECRET=" + adminSecret, "RUN_KEY=" + runID, "RUN_SECRET=" + runSecret}
	browse(t, "browse.js", env, func(line string) (string, bool) {
		switch line {
		case "create":
			create("made while the page was open", second)
		case "ended":
			for push := range first.pushes {
				if push.action == "TerminateProcess" {
					break
				}
			}
			entry, err := s.remote(adminID, adminSecret, "audit", "--json", "--door", "console", "--what", "TerminateGameSession")
			must(t, err)
			var got struct{ Who, Reason, ID, Outcome string }
			must(t, json.Unmarshal([]byte(entry), &got))
			if got.Who != runID || got.Reason != "stuck in <b>loading</b>" || got.ID != tail || got.Outcome != "done" {
				t.Errorf("the audit log has %s", entry)
			}
		case "saved":
			out, err := admin.DescribeMatchmakingConfigurations(t.Context(), &gamelift.DescribeMatchmakingConfigurationsInput{Names: []string{"duel"}})
			must(t, err)
			if got := *out.Configurations[0].RuleSetName; got != "duel-rules-2" {
				t.Errorf("the configuration uses %s", got)
			}
			entry, err := s.remote(adminID, adminSecret, "audit", "--json", "--door", "console", "--what", "CreateMatchmakingRuleSet")
			must(t, err)
			if !strings.Contains(entry, `"closer games"`) {
				t.Errorf("the audit log has %s", entry)
			}
		case "delete":
			_, err := admin.DeleteGameSessionQueue(t.Context(), &gamelift.DeleteGameSessionQueueInput{Name: aws.String("ranked")})
			must(t, err)
		case "link":
			said, err := s.remote(id, secret, "console")
			must(t, err)
			link, _, _ := strings.Cut(said, "\n")
			return "done " + link, true
		case "revoke":
			s.command("keys", "revoke", "--data", s.data, id)
		default:
			return "", false
		}
		return "done", true
	})
}

// stayHealthy makes server processes report health until the test ends, however slow the machine is: the service ends processes without a report for three minutes.
func stayHealthy(t *testing.T, all ...*bareServer) {
	t.Helper()
	var reporting sync.WaitGroup
	t.Cleanup(reporting.Wait)
	for _, b := range all {
		reporting.Go(func() {
			beat := time.NewTicker(30 * time.Second)
			defer beat.Stop()
			for {
				select {
				case <-t.Context().Done():
					return
				case <-beat.C:
				}
				_ = b.Heartbeat(t.Context(), true) // the conditions that the test waits for show a lost one
			}
		})
	}
}
