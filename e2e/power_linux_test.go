package e2e

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/musterhq/muster/internal/powertest"
	"github.com/musterhq/muster/internal/waittest"
)

// onPower starts a service whose data directory is on a disk whose power can be cut.
func onPower(t *testing.T, args ...string) (*service, *powertest.Disk) {
	t.Helper()
	disk := powertest.Mount(t, rand.Uint64())
	s := newService(t, args...)
	s.data = filepath.Join(disk.Dir(), "data")
	s.start()
	return s, disk
}

// cutPower ends the service together with its disk, and gives the disk its power back with what survived.
func (s *service) cutPower(disk *powertest.Disk) {
	s.t.Helper()
	disk.Cut()
	s.kill()
	must(s.t, disk.Restore())
}

// The power is cut repeatedly under load, on a disk that keeps any subset of the unsynced writes. Everything acknowledged
// survives: journal, archive, snapshots (one for every few hundred changes), and the secret, so that game servers' tokens stay valid.
func TestHistoryThroughPowerCuts(t *testing.T) {
	t.Parallel()
	const reservation = 12 * time.Second
	s, disk := onPower(t, "--reservation", reservation.String(), "--ended-linger", "300ms", "--snapshot-every", "1MiB")
	p := s.prepare()
	p.queue("queue")
	h := newHistory(p, reservation)
	ctx, stop := context.WithCancel(t.Context())
	work := h.start(ctx, 3, 6, 12)
	for end := time.Now().Add(crashFor(t)); time.Now().Before(end); {
		if rand.IntN(2) == 0 {
			disk.CutAfter(1 + rand.IntN(1500)) // in the middle of something
		}
		time.Sleep(500*time.Millisecond + rand.N(2500*time.Millisecond))
		h.crash(func() { p.cutPower(disk) }, p.start)
	}
	time.Sleep(time.Second)
	stop()
	work.Wait()
	h.check(t)
}

// The power is cut at every change of the disk during a first start, in turn. Afterwards the service starts, and an access key that was created
// works: the secret that it was derived from and the key in the state both survived.
func TestPowerCutsDuringTheFirstStart(t *testing.T) {
	t.Parallel()
	step := 7
	if testing.Short() {
		step = 29
	}
	for n := 1; ; n += step {
		disk := powertest.Mount(t, uint64(n))
		s := newService(t)
		s.data = filepath.Join(disk.Dir(), "data")
		disk.CutAfter(n)
		id, secret, made := createdKey(t, s.data)
		cut := disk.Off()
		disk.Cut()
		must(t, disk.Restore())
		if !made {
			id, secret, made = createdKey(t, s.data)
			if !made {
				t.Fatalf("after a cut at change %d of the first start no key can be created", n)
			}
		}
		s.args = []string{"--dev=false"}
		s.start()
		if _, err := s.apiWith(id, secret).ListFleets(t.Context(), &gamelift.ListFleetsInput{}); err != nil {
			t.Errorf("cut at change %d: the key that was created: %v", n, err)
		}
		s.kill()
		if !cut {
			return // the whole of it was gone through
		}
	}
}

// The power is cut after the push of a game session to the first game server of a placement, and only what was synced survives. The
// journal has that push, so there is no second one while the first game server may come back. If it does not, the placement's second
// attempt pushes the game session to the second one, and no write is lost.
func TestASecondPushAfterAPowerCutIsASecondAttempt(t *testing.T) {
	t.Parallel()
	for _, returns := range []bool{false, true} {
		s, disk := onPower(t, "--virtual-clock", "--link-grace", "60s", "--activation-timeout", "300s")
		p := s.prepare()
		p.queue("queue")
		first := p.dial("first", "")
		must(t, first.Activate(t.Context(), 7777))
		must(t, first.Heartbeat(t.Context(), true))
		waittest.Until(t, "a free server process", func() bool {
			_, err := p.api().StartGameSessionPlacement(t.Context(), &gamelift.StartGameSessionPlacementInput{
				GameSessionQueueName: aws.String("queue"), PlacementId: aws.String("placed"), MaximumPlayerSessionCount: aws.Int32(2),
			})
			return err == nil
		})
		id := first.pushed(t)
		p.cutPower(disk)
		p.start()
		second := p.dial("second", "")
		must(t, second.Activate(t.Context(), 7778))
		must(t, second.Heartbeat(t.Context(), true))
		p.advance(59 * time.Second)
		must(t, second.Heartbeat(t.Context(), true))
		second.notPushed(t)
		if returns {
			first.connect()
			must(t, first.Heartbeat(t.Context(), true))
			must(t, first.ActivateGameSession(t.Context(), id))
			first.notPushed(t)
			second.notPushed(t)
		} else {
			p.advance(2 * time.Second)
			if again := second.pushed(t); again != id {
				t.Errorf("the second attempt has game session %s, want %s", again, id)
			}
			must(t, second.ActivateGameSession(t.Context(), id))
			first.connect() // too late: its process has ended
			_ = first.Heartbeat(t.Context(), true)
			first.notPushed(t)
		}
		waittest.Until(t, "the placement to be fulfilled", func() bool {
			return p.placement("placed").Status == types.GameSessionPlacementStateFulfilled
		})
		list, err := p.api().DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{FleetId: &p.fleet})
		must(t, err)
		if len(list.GameSessions) != 1 || *list.GameSessions[0].GameSessionId != id || list.GameSessions[0].Status != types.GameSessionStatusActive {
			t.Errorf("the fleet has %d game sessions, want %s ACTIVE alone", len(list.GameSessions), id)
		}
	}
}

// pushed waits for a CreateGameSession and returns its game session.
func (b *bareServer) pushed(t *testing.T) string {
	t.Helper()
	for {
		select {
		case push := <-b.pushes:
			if push.action == "CreateGameSession" {
				return push.game
			}
		case <-time.After(patience):
			t.Fatal("waited in vain for a game session to be pushed")
		}
	}
}

// notPushed checks that no CreateGameSession has come. A request was answered before, and pushes are in order with answers.
func (b *bareServer) notPushed(t *testing.T) {
	t.Helper()
	for {
		select {
		case push := <-b.pushes:
			if push.action == "CreateGameSession" {
				t.Errorf("pushed to %s: %s", b.options.Process, push.text)
			}
		default:
			return
		}
	}
}

var keyLines = regexp.MustCompile(`AWS_ACCESS_KEY_ID=(\S+)\n.*AWS_SECRET_ACCESS_KEY=(\S+)`)

// createdKey creates an access key with the command line, and reports whether the command said that it is in force.
func createdKey(t *testing.T, data string) (id, secret string, ok bool) {
	t.Helper()
	cmd := exec.Command(musterBinary, "keys", "create", "--data", data, "--role", "admin", "--format", "env")
	cmd.Env = cleanEnvironment("HOME=" + t.TempDir())
	out, err := cmd.Output()
	found := keyLines.FindSubmatch(out)
	if err != nil || found == nil {
		return "", "", false
	}
	return string(found[1]), string(found[2]), true
}
