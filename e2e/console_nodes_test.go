package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// A real browser looks at a cluster of three nodes and at the parties and tickets in it, and makes another node the leader. The steps are in console/nodes.js.
func TestConsoleOfAClusterInABrowser(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	nodes := threeNodes(t, "--player-flow")
	api := nodes[0].client
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

	var ann, bob *flowPlayer
	code := ""
	browse(t, "nodes.js", []string{"MUSTER_URL=" + nodes[1].url()}, func(line string) (string, bool) {
		what, to, handed := strings.Cut(line, "handed over to ")
		switch {
		case handed:
			waittest.Until(t, "the node to lead", func() bool { return clusterStatus(t, nodes[2]).Leader == to })
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
			return "", false
		}
		return "done", true
	})
}
