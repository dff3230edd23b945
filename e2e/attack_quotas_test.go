package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// A backend with an endless loop, and with as many temporary credentials as it likes, is refused at its quota. The refusal names the quota, what the backend holds, the
// limit, and its own name. Another key finds room all the time. A crash and a restart forget nothing, and deletions make room.
func TestAttackKeyThatCreatesWithoutEnd(t *testing.T) {
	t.Parallel()
	w := startClientWorld(t, "--quotas", "queues=5 tickets=6 placements=7")
	ctx := t.Context()
	runaway, runawaySecret := w.key("admin")
	tidy := w.apiWith(w.key("admin"))
	of := map[string]*gamelift.Client{"the key": w.apiWith(runaway, runawaySecret)}
	for i := range 3 { // sessions of other names are the same holder
		c := w.assume(runaway, runawaySecret, "backend", fmt.Sprint("worker-", i))
		options := of["the key"].Options()
		options.Credentials = credentials.StaticCredentialsProvider{Value: c}
		of[c.AccessKeyID] = gamelift.New(options)
	}
	queue := func(api *gamelift.Client, name string) error {
		_, err := api.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: &name})
		return err
	}
	ticket := func(api *gamelift.Client, id string) error {
		_, err := api.StartMatchmaking(ctx, &gamelift.StartMatchmakingInput{ConfigurationName: aws.String("crowd"), TicketId: &id, Players: []types.Player{{PlayerId: &id}}})
		return err
	}
	placement := func(api *gamelift.Client, id string) error {
		_, err := api.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{PlacementId: &id, GameSessionQueueName: aws.String("cup"), MaximumPlayerSessionCount: aws.Int32(2)})
		return err
	}
	loops := func(round string, create func(api *gamelift.Client, name string) error, clients map[string]*gamelift.Client) (made int, refusals []error) {
		var mu sync.Mutex
		var running sync.WaitGroup
		for who, api := range clients {
			running.Go(func() {
				for i := range 10 {
					err := create(api, fmt.Sprintf("%s-%s-%d", round, strings.ReplaceAll(who, " ", "-"), i))
					mu.Lock()
					if err == nil {
						made++
					} else {
						refusals = append(refusals, err)
					}
					mu.Unlock()
				}
			})
		}
		running.Wait()
		return made, refusals
	}
	for _, x := range []struct {
		what   string
		create func(*gamelift.Client, string) error
		quota  int
		code   string
		of     map[string]*gamelift.Client
	}{
		{"queues", queue, 5, "LimitExceededException", map[string]*gamelift.Client{"the key": of["the key"]}}, // the role backend makes none
		{"tickets", ticket, 6, "ThrottlingException", of},
		{"placements", placement, 7, "ThrottlingException", of},
	} {
		made, refusals := loops("first", x.create, x.of)
		if made != x.quota {
			t.Errorf("%d %s were made, want %d", made, x.what, x.quota)
		}
		for _, err := range refusals {
			refused(t, x.what, err, x.code, fmt.Sprintf("%s of this holder: %d; its quota %[1]s is %[2]d; the holder is %[3]s", x.what, x.quota, runaway))
		}
		must(t, x.create(tidy, "mine-"+x.what))
	}
	w.kill()
	w.start()
	if made, _ := loops("second", queue, map[string]*gamelift.Client{"the key": of["the key"]}); made != 0 {
		t.Errorf("after a crash %d more queues were made", made)
	}
	if made, _ := loops("second", ticket, of); made != 0 {
		t.Errorf("after a crash %d more tickets were made", made)
	}
	must(t, queue(tidy, "mine-again"))
	_, err := tidy.DeleteGameSessionQueue(ctx, &gamelift.DeleteGameSessionQueueInput{Name: aws.String("first-the-key-0")})
	must(t, err)
	must(t, queue(of["the key"], "room-again"))
	refused(t, "the next one", queue(of["the key"], "too-many"), "LimitExceededException", "its quota queues is 5")

	page := w.page(runaway, runawaySecret, "/metrics")
	for _, line := range []string{
		`muster_quota_held{holder="` + runaway + `",quota="queues"} 5`, `muster_quota_limit{holder="` + runaway + `",quota="queues"} 5`, `muster_quota_refused_total{quota="queues"} `,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("no %q in /metrics", line)
		}
	}
	top := strings.Join(strings.Fields(w.command("top", "--once", "--data", w.data, "--listen", w.address)), " ")
	if !strings.Contains(top, "Access key "+runaway+" has 6 tickets; its quota is 6") {
		t.Errorf("muster top does not show who has reached a quota: %s", top)
	}
}

// A leaked join token admits hosts, which become computes, up to the quotas of its issuer. The agents of further hosts report the reason, keep trying, and get their turn
// when there is room.
func TestAttackJoinTokenWithoutEnd(t *testing.T) {
	t.Parallel()
	s, admin := startProduction(t, "--quotas", "hosts=2 computes=1")
	s.client = admin
	p := s.prepare()
	issuer, secret := s.key("admin")
	dir := t.TempDir()
	token := filepath.Join(dir, "join")
	hosts := func(args ...string) string {
		cmd := exec.Command(musterBinary, append(append([]string{"hosts"}, args...), "--data", s.data, "--listen", s.address)...)
		cmd.Env = cleanEnvironment("HOME="+dir, "AWS_ACCESS_KEY_ID="+issuer, "AWS_SECRET_ACCESS_KEY="+secret)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("muster hosts %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	must(t, os.WriteFile(token, []byte(hosts("join-token", "--fleet", p.fleet, "--location", p.location, "--uses", "100")), 0o600))
	agent := func(name string) *output {
		t.Helper()
		logs := newOutput()
		cmd := exec.Command(musterBinary, "agent", "--server", s.url(), "--join-token-file", token, "--compute-name", name, "--ip", "127.0.0.1", "--state-dir", filepath.Join(dir, name))
		cmd.Env, cmd.Stdout, cmd.Stderr = cleanEnvironment(), logs, logs
		must(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		})
		return logs
	}
	computes := func(names ...string) {
		t.Helper()
		waittest.Until(t, fmt.Sprint("one of ", names, " to be a compute"), func() bool {
			out, err := admin.ListCompute(t.Context(), &gamelift.ListComputeInput{FleetId: &p.fleet})
			must(t, err)
			return slices.ContainsFunc(out.ComputeList, func(c types.Compute) bool { return slices.Contains(names, *c.ComputeName) })
		})
	}
	agent("rack-1")
	computes("rack-1")
	agent("rack-2").mustHave(t, "computes of this holder: 1; its quota computes is 1; the holder is "+issuer)
	agent("rack-3").mustHave(t, "hosts of this holder: 2; its quota hosts is 2; the holder is "+issuer)
	if page := s.page(issuer, secret, "/metrics"); !strings.Contains(page, `muster_quota_held{holder="`+issuer+`",quota="hosts"} 2`) || strings.Contains(page, `muster_quota_refused_total{quota="hosts"} 0`) {
		t.Errorf("/metrics has no hosts of %s, or no refusal", issuer)
	}
	s.kill()
	s.start()
	late := agent("rack-4")
	late.mustHave(t, "its quota hosts is 2; the holder is "+issuer) // which made no request since the start

	hosts("revoke", "rack-1")
	computes("rack-2", "rack-3", "rack-4")
	waittest.Until(t, "an agent that was refused to join", func() bool {
		table := hosts()
		return strings.Contains(table, "rack-3") || strings.Contains(table, "rack-4")
	})
}

// page reads a page with a key.
func (s *service) page(id, secret, path string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url()+path, nil)
	must(s.t, err)
	r.SetBasicAuth(id, secret)
	answer, err := http.DefaultClient.Do(r)
	must(s.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(s.t, err)
	return string(text)
}
