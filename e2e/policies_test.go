package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// law writes a policy with some statements to a file.
func law(t *testing.T, statements ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "policy.json")
	must(t, os.WriteFile(path, []byte(`{"Version":"2012-10-17","Statement":[`+strings.Join(statements, ",")+`]}`), 0o600))
	return path
}

// statement returns a statement about some actions; rest may be a condition.
func statement(effect, actions, resource string, rest ...string) string {
	return fmt.Sprintf(`{"Effect":%q,"Action":["%s"],"Resource":%q%s}`, effect, strings.Join(strings.Fields(actions), `","`), resource, strings.Join(rest, ""))
}

// policies changes policies with the data directory.
func (s *service) policies(args ...string) string {
	s.t.Helper()
	return s.command(append([]string{"policies", args[0], "--data", s.data}, args[1:]...)...)
}

// holder makes calls at every door with one access key, with the clients that people use.
type holder struct {
	*place
	t                 *testing.T
	id, secret        string
	partner, operator string // addresses of the realms
	links             int
}

// aws runs the AWS CLI.
func (h *holder) aws(args ...string) string {
	cmd := exec.Command(awsCLI(h.t), append([]string{"--endpoint-url", h.url(), "--region", region, "--output", "json"}, args...)...)
	cmd.Env = cleanEnvironment("HOME="+h.t.TempDir(), "AWS_MAX_ATTEMPTS=1", "AWS_PAGER=", "LC_ALL=C.UTF-8", "AWS_ACCESS_KEY_ID="+h.id, "AWS_SECRET_ACCESS_KEY="+h.secret)
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// muster runs a command of operators.
func (h *holder) muster(args ...string) string {
	out, _ := h.remote(h.id, h.secret, args...)
	return out
}

// ask sends a request with id and secret, and returns status and body.
func (h *holder) ask(method, address, path, body string) string {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, "http://"+address+path, strings.NewReader(body))
	must(h.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth(h.id, h.secret)
	return h.answer(http.DefaultClient, r)
}

func (h *holder) answer(client *http.Client, r *http.Request) string {
	h.t.Helper()
	answer, err := client.Do(r)
	must(h.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(h.t, err)
	return answer.Status + " " + string(text)
}

// console signs in as a browser does, and gets a page or, with a form, sends the form.
func (h *holder) console(path string, form url.Values) string {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	must(h.t, err)
	browser := &http.Client{Jar: jar}
	send := func(path string, form url.Values) string {
		method := http.MethodPost
		if form == nil {
			method = http.MethodGet
		}
		r, err := http.NewRequestWithContext(h.t.Context(), method, h.url()+"/console"+path, strings.NewReader(form.Encode()))
		must(h.t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return h.answer(browser, r)
	}
	send("/sign-in", url.Values{"key": {h.id}, "secret": {h.secret}})
	return send(path, form)
}

// connect connects a game server that signs with the key.
func (h *holder) connect() string {
	h.links++
	if _, err := h.link(fmt.Sprint("signed-", h.links), h.signs(h.id, h.secret, time.Now().UTC())); err != nil {
		return err.Error()
	}
	return "connected"
}

// A denied call and an allowed one at every door. The first policy allows one call and, if a door has several actions, not the other. The second policy denies
// the rest.
func TestPoliciesAtEveryDoor(t *testing.T) {
	t.Parallel()
	partner, operator := porttest.Free(t), porttest.Free(t)
	p, _, admin, adminSecret := productionPlace(t, "--player-flow", "--partner-listen", partner, "--operator-listen", operator)
	h := &holder{place: p, t: t, partner: partner, operator: operator}
	h.id, h.secret = p.key("admin")
	fleet := "arn:aws:gamelift:*:*:fleet/" + p.fleet
	created := h.muster("policies", "create", "ci", law(t,
		statement("Allow", "gamelift:DescribeFleetCapacity gamelift:SearchGameSessions muster:GameServer.Connect", fleet),
		statement("Allow", "gamelift:ListFleets cloudwatch:ListMetrics muster:Session.CreatePlayerId muster:Flow.GetPlayers muster:Operator.ListPlayers", "*"),
		statement("Allow", "muster:Service.ListHosts muster:Console.Look muster:Metrics.Read", "*"),
		statement("Allow", "sts:AssumeRole", "arn:aws:iam::000000000000:role/readonly")))
	if !strings.Contains(created, "policy ci is created") {
		t.Fatal(created)
	}
	if out := h.muster("policies", "attach", "ci", h.id); !strings.Contains(out, "is in force") {
		t.Fatal(out)
	}

	assume := func(role string) string {
		return h.aws("sts", "assume-role", "--role-arn", "arn:aws:iam::000000000000:role/"+role, "--role-session-name", "build")
	}
	doors := []struct {
		name, action    string
		allowed, denied func() string
		as              string // part of the answer to what is allowed
	}{
		{"service API", "gamelift:CreateLocation", func() string { return h.aws("gamelift", "describe-fleet-capacity", "--fleet-ids", p.fleet) },
			func() string { return h.aws("gamelift", "create-location", "--location-name", "custom-here") }, "FleetCapacity"},
		{"service API, a list", "gamelift:ListBuilds", func() string { return h.aws("gamelift", "list-fleets") }, func() string { return h.aws("gamelift", "list-builds") }, p.fleet},
		{"CloudWatch", "cloudwatch:GetMetricStatistics", func() string { return h.aws("cloudwatch", "list-metrics") },
			func() string {
				return h.aws("cloudwatch", "get-metric-statistics", "--namespace", "AWS/GameLift", "--metric-name", "ActiveServerProcesses",
					"--start-time", "2026-01-01T00:00:00Z", "--end-time", "2026-01-01T01:00:00Z", "--period", "300", "--statistics", "Maximum")
			}, "Metrics"},
		{"STS", "sts:AssumeRole", func() string { return assume("readonly") }, func() string { return assume("backend") }, "SessionToken"},
		{"session nodes", "gamelift:CreateGameSession", func() string {
			return h.ask("POST", p.address, "/session/v1/SearchSessions", `{"fleetId":"`+p.fleet+`"}`)
		},
			func() string {
				return h.ask("POST", p.address, "/session/v1/CreateSession", `{"fleetId":"`+p.fleet+`","maxPlayer":2}`)
			}, "200"},
		{"session nodes, an event stream", "muster:Session.Events", func() string { return h.ask("POST", p.address, "/session/v1/CreatePlayerId", `{}`) },
			func() string { return h.ask("GET", p.address, "/session/v1/events?clientId=a", "") }, "200"},
		{"realm of trusted servers", "muster:Flow.SetBlocks", func() string {
			return h.ask("POST", partner, "/playerflow/v1/partner/Flow.GetPlayers", `{"player_ids":["ann"]}`)
		},
			func() string { return h.ask("POST", partner, "/playerflow/v1/partner/Flow.SetBlocks", `{}`) }, "200"},
		{"realm of operators", "muster:Operator.BanPlayer", func() string {
			return h.ask("POST", operator, "/playerflow/v1/operator/Operator.ListPlayers", `{"reason":"a look"}`)
		},
			func() string { return h.ask("POST", operator, "/playerflow/v1/operator/Operator.BanPlayer", `{}`) }, "200"},
		{"operators' API", "muster:Service.ListKeys", func() string { return h.muster("hosts", "list") }, func() string { return h.muster("keys", "list") }, "ID"},
		{"console", "muster:Service.ListKeys", func() string { return h.console("/fleets", nil) }, func() string { return h.console("/keys", nil) }, "200"},
		{"console, a form", "muster:Service.CreateKey", func() string { return h.console("/fleets", nil) },
			func() string { return h.console("/do/create-key", url.Values{"name": {"mine"}, "role": {"admin"}}) }, "200"},
		{"metrics", "", func() string { return h.ask("GET", p.address, "/metrics", "") }, nil, "muster_"},
		{"game servers", "", h.connect, nil, "connected"},
	}
	for _, d := range doors {
		if got := d.allowed(); !strings.Contains(got, d.as) || strings.Contains(got, "not authorized") {
			t.Errorf("%s, allowed: %.500s", d.name, got)
		}
		if d.denied == nil {
			continue
		}
		if got, want := strings.ReplaceAll(d.denied(), "&#34;", `"`), "is not authorized to perform: "+d.action; !strings.Contains(got, want) {
			t.Errorf("%s, denied: %.500s\nwant %q", d.name, got, want)
		}
	}
	out := p.command("access", "explain", "--data", p.data, h.id, "gamelift:DescribeFleetCapacity", strings.Replace(fleet, "*:*", "us-east-1:000000000000", 1))
	if !strings.Contains(out, "ALLOWED") || !strings.Contains(out, "Statement 1 of policy ci allows it.") {
		t.Errorf("explained: %s", out)
	}
	explained, err := p.remote(admin, adminSecret, "access", "explain", h.id, "gamelift:CreateLocation")
	if must(t, err); !strings.Contains(explained, "DENIED  No statement allows it") {
		t.Errorf("explained: %s", explained)
	}

	// The key's streams end with the change, and so does the game server that may no longer connect.
	server, err := p.link("kept", h.signs(h.id, h.secret, time.Now().UTC()))
	must(t, err)
	p.policies("update", "ci", law(t, statement("Allow", "muster:Session.Events muster:GameServer.Connect", "*")))
	stream := hold(t, "event stream of scripts", p.address, "GET /session/v1/events HTTP/1.1\r\nX-Client-Id: a\r\nAuthorization: Bearer "+h.id+"."+h.secret+"\r\n", http.StatusOK)
	if h.connect() != "connected" {
		t.Error("a game server may not connect")
	}
	select {
	case <-server.Closed():
		t.Error("a change of policies has closed the connection of a game server that may connect")
	default:
	}
	p.policies("update", "ci", law(t, statement("Allow", "gamelift:ListBuilds", "*")))
	for what, ended := range map[string]<-chan struct{}{stream.what: stream.ended, "game server": server.Closed()} {
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("the %s outlived what allowed it", what)
		}
	}
	for _, d := range doors {
		if got := d.allowed(); !strings.Contains(strings.ToLower(got), "not authorized") && !strings.Contains(got, "403") {
			t.Errorf("%s, with a policy that allows nothing here: %.500s", d.name, got)
		}
	}

	// The role of another key is not concerned, and the way back is the data directory.
	must(t, p.lists(aws.Credentials{AccessKeyID: admin, SecretAccessKey: adminSecret}))
	p.policies("detach", "ci", h.id)
	if got := h.aws("gamelift", "list-fleets"); !strings.Contains(got, p.fleet) {
		t.Errorf("without the policy: %s", got)
	}
	waittest.Until(t, "the audit log has the policies and the refused attempts", func() bool {
		entries, err := p.remote(admin, adminSecret, "audit", "--json")
		must(t, err)
		for _, want := range []string{"policies/{name}/attach", "policies update", "policies detach", "AccessDenied"} {
			if !strings.Contains(entries, want) {
				return false
			}
		}
		return true
	})
}

// A policy for all hosts is in force at the agents' door, also for a connected agent.
func TestAttackPoliciesAtTheAgentDoor(t *testing.T) {
	t.Parallel()
	p, _, admin, adminSecret := productionPlace(t)
	connect := func() string {
		conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+p.address+"/agent?"+p.agentQuery().Encode(), nil)
		if err == nil {
			conn.Close()
			return "connected"
		}
		if answer == nil {
			return err.Error()
		}
		text, _ := io.ReadAll(answer.Body)
		return answer.Status + " " + string(text)
	}
	if got := connect(); got != "connected" {
		t.Fatal(got)
	}
	a := agentAt(t, "ws://"+p.address+"/agent", p.agentQuery())
	p.policies("create", "agents", law(t, statement("Allow", "muster:Agent.Connect", "arn:aws:gamelift:*:*:fleet/fleet-other")))
	p.policies("attach", "agents", "host:*")
	waittest.Until(t, "the end of the agent's connection", a.ended)
	if got := connect(); !strings.HasPrefix(got, "403") || !strings.Contains(got, "not authorized to perform: muster:Agent.Connect") {
		t.Errorf("an agent that may not connect: %s", got)
	}
	out, err := p.remote(admin, adminSecret, "access", "explain", "host:host-1", "muster:Agent.Connect", "arn:aws:gamelift:us-east-1:000000000000:fleet/"+p.fleet)
	if must(t, err); !strings.Contains(out, "DENIED  No statement allows it") {
		t.Errorf("explained: %s", out)
	}
	p.policies("update", "agents", law(t, statement("Allow", "muster:Agent.Connect", "arn:aws:gamelift:*:*:fleet/"+p.fleet)))
	if got := connect(); got != "connected" {
		t.Errorf("its own fleet: %s", got)
	}
	p.policies("detach", "agents", "host:*")
	if got := connect(); got != "connected" {
		t.Errorf("without the policy: %s", got)
	}
}
