package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// A backend whose loop never ends, with as many temporary credentials as it likes, is refused at its quota with the quota, what it holds, the limit and its own
// name. Another key finds room all the time. A crash and a restart forget nothing, and what is deleted makes room.
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
		_, err := api.StartMatchmaking(ctx, &gamelift.StartMatchmakingInput{ConfigurationName: aws.String("duel"), TicketId: &id, Players: []types.Player{{PlayerId: &id}}})
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
