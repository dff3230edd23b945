package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/porttest"
)

// A real browser looks at a cluster of three nodes and at the parties and tickets in it, and makes another node the leader. The steps are in console/nodes.js.
func TestConsoleOfAClusterInABrowser(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("console/node_modules"); err != nil {
		t.Fatal("console/node_modules is missing: run scripts/test-needs.sh")
	}
	first := startService(t, "--player-flow", "--cluster-listen", porttest.Free(t))
	nodes := []*service{first}
	for range 2 {
		n := newService(t, "--player-flow", "--cluster-listen", porttest.Free(t), "--join", mustCluster(t, nodes[len(nodes)-1], "join-token"))
		n.start()
		nodes = append(nodes, n)
	}
	eventually(t, "three nodes to vote", func() bool { return voters(clusterStatus(t, first)) == 3 })
	for _, n := range nodes {
		eventually(t, "the node to be ready", func() bool { return ready(t, n) })
	}
	api := first.client
	_, err := api.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("five"), RuleSetBody: aws.String(`{
  "ruleLanguageVersion": "1.0",
  "playerAttributes": [{"name": "skill", "type": "number", "default": 1000}, {"name": "mode", "type": "string_list", "default": ["any"]}],
  "teams": [{"name": "all", "minPlayers": 5, "maxPlayers": 5}]
}`)})
	must(t, err)
	_, err = api.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("ranked"), RuleSetName: aws.String("five"), FlexMatchMode: types.FlexMatchModeStandalone, AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
	})
	must(t, err)

	cmd := exec.CommandContext(t.Context(), "node", "nodes.js")
	cmd.Dir = "console"
	cmd.Env = cleanEnvironment("HOME="+t.TempDir(), "MUSTER_URL="+nodes[1].url(), "SHOTS="+os.Getenv("CONSOLE_SHOTS"))
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var problems strings.Builder
	cmd.Stderr = &problems
	must(t, cmd.Start())
	var ann, bob *flowPlayer
	code := ""
	for asked := bufio.NewScanner(out); asked.Scan(); {
		what, to, handed := strings.Cut(asked.Text(), "handed over to ")
		switch {
		case handed:
			eventually(t, "the node to lead", func() bool { return clusterStatus(t, nodes[2]).Leader == to })
			answer, err := http.Get(nodes[0].url() + "/console/audit?format=json&what=hand-over")
			must(t, err)
			var log struct{ Rows []map[string]any }
			must(t, json.NewDecoder(answer.Body).Decode(&log))
			_ = answer.Body.Close()
			if len(log.Rows) != 1 || log.Rows[0]["reason"] != "a new kernel" {
				t.Errorf("the audit log has %v", log.Rows)
			}
		case what == "party":
			ann = nodes[2].login(t, "ann")
			code = ann.call("Party.CreateParty", object{}).at("party", "invite_code").(string)
		case what == "join":
			bob = nodes[0].login(t, "bob")
			bob.call("Party.JoinPartyByInviteCode", object{"code": code})
		case what == "leave":
			ann.call("Party.LeaveParty", object{})
			bob.call("Party.LeaveParty", object{})
		case what == "ticket":
			for _, player := range []string{"cyd", "dora", "eve"} {
				_, err := api.StartMatchmaking(t.Context(), &gamelift.StartMatchmakingInput{ConfigurationName: aws.String("ranked"), Players: []types.Player{{
					PlayerId: aws.String(player), LatencyInMs: map[string]int32{"eu-central-1": 30}, PlayerAttributes: map[string]types.AttributeValue{"skill": {N: aws.Float64(1200)}},
				}}})
				must(t, err)
			}
		default:
			t.Log(asked.Text())
			continue
		}
		_, err := in.Write([]byte("done\n"))
		must(t, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
}
