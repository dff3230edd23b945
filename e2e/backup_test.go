package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// A rehearsal of the worst day: a backup that was made while others wrote, of a single machine and of a follower in a cluster, becomes a single machine, and that a
// cluster. It has everything that was acknowledged before.
func TestBackupRehearsal(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		s := startService(t, "--ended-linger", "1ms")
		rehearse(t, s, s)
	})
	t.Run("follower", func(t *testing.T) {
		t.Parallel()
		leader := startService(t, "--ended-linger", "1ms", "--cluster-listen", freeAddress(t))
		eventually(t, "the node to be ready", func() bool { return ready(t, leader) })
		follower := newService(t, "--ended-linger", "1ms", "--cluster-listen", freeAddress(t), "--join", mustCluster(t, leader, "join-token"))
		follower.start()
		eventually(t, "both nodes to vote", func() bool { return voters(clusterStatus(t, leader)) == 2 })
		eventually(t, "the follower to be ready", func() bool { return ready(t, follower) })
		rehearse(t, leader, follower)
	})
}

// rehearse writes at one node, and makes the backups at another one or the same.
func rehearse(t *testing.T, writes, at *service) {
	ctx := t.Context()
	id, secret := at.key("admin")
	_, err := writes.client.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: aws.String("cup")})
	must(t, err)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // the load
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, err := writes.client.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-load")})
			if err == nil {
				_, err = writes.client.DeleteLocation(ctx, &gamelift.DeleteLocationInput{LocationName: aws.String("custom-load")})
			}
			if err != nil {
				t.Errorf("the load: %v", err)
				return
			}
		}
	}()
	file, made := "", 0
	eventually(t, "a backup with archived placements", func() bool {
		placement := fmt.Sprint("placement-", made)
		_, err := writes.client.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{
			GameSessionQueueName: aws.String("cup"), MaximumPlayerSessionCount: aws.Int32(2), PlacementId: &placement,
		})
		must(t, err)
		_, err = writes.client.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: &placement})
		must(t, err)
		_, err = writes.client.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String(fmt.Sprint("custom-", made))})
		must(t, err)
		made++
		file = filepath.Join(t.TempDir(), "backup")
		return strings.Contains(at.command("backup", "--data", at.data, "--to", file), "placements")
	})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if out, err := at.commandFails("backup", "--data", at.data, "--to", file); err == nil || !strings.Contains(out, "is there already") {
		t.Errorf("over an existing file: %v, %s", err, out)
	}
	close(stop)
	<-stopped

	if out := at.command("restore", "--verify", file); !strings.Contains(out, "The backup is whole") {
		t.Error(out)
	}
	restored := newService(t, "--dev=false")
	if out, err := at.commandFails("restore", file, "--data", at.data); err == nil || !strings.Contains(out, "not empty") {
		t.Errorf("over a directory in use: %v, %s", err, out)
	}
	restored.command("restore", file, "--data", restored.data)
	has := func() {
		t.Helper()
		restored.client = restored.apiWith(id, secret)
		for i := range made {
			wantLocation(t, fmt.Sprint("custom-", i), restored)
			out, err := restored.client.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: aws.String(fmt.Sprint("placement-", i))})
			must(t, err)
			if out.GameSessionPlacement.Status != types.GameSessionPlacementStateCancelled {
				t.Errorf("placement %d is %s", i, out.GameSessionPlacement.Status)
			}
		}
	}
	restored.start()
	has()
	restored.stop()
	restored.args = append(restored.args, "--cluster-listen", freeAddress(t))
	restored.start()
	eventually(t, "the new cluster to be ready", func() bool { return ready(t, restored) })
	has()
	createLocation(t, "custom-later", restored, restored)
}

// A damaged backup is refused, and so is a command without a service.
func TestBackupThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	s := startService(t)
	file := filepath.Join(t.TempDir(), "backup")
	s.command("backup", "--data", s.data, "--to", file)
	content, err := os.ReadFile(file)
	must(t, err)
	content[len(content)-20] ^= 1
	must(t, os.WriteFile(file, content, 0o600))
	if out, err := s.commandFails("restore", "--verify", file); err == nil || !strings.Contains(out, "not a whole backup") {
		t.Errorf("a damaged backup: %v, %s", err, out)
	}
	s.stop()
	if out, err := s.commandFails("backup", "--data", s.data, "--to", file+"2"); err == nil || !strings.Contains(out, "needs the running service") {
		t.Errorf("without a service: %v, %s", err, out)
	}
}
