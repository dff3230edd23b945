//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// killable is the service as a process of its own.
type killable struct {
	t             *testing.T
	data, address string
	key           identity.AccessKey // of an admin
	cmd           *exec.Cmd
}

// killableForTest starts a service that kill ends without warning.
func killableForTest(t *testing.T) *killable {
	t.Helper()
	s := &killable{t: t, data: filepath.Join(t.TempDir(), "data")}
	store, err := keyring.OpenOffline(t.Context(), s.data, nil, cell.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if s.key, err = store.Create(t.Context(), access.Actor{}, keyring.New{Role: identity.Admin, Name: "admin"}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s.address = porttest.Free(t)
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *killable) start() {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(self, "serve", "--data", s.data, "--listen", s.address, "--log-level", "error")
	s.cmd.Env = append(os.Environ(), asMuster+"=1")
	s.cmd.Stdout, s.cmd.Stderr = s.t.Output(), s.t.Output()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	waittest.Until(s.t, "the service is up", func() bool {
		answer, err := http.Get("http://" + s.address + "/healthz")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
}

// kill sends SIGKILL.
func (s *killable) kill() {
	_ = s.cmd.Process.Kill() // fails only when it is over already
	_ = s.cmd.Wait()
}

// breakable is a game server that runs until a file named "broken" is beside it. Then it dies, and so does every server that starts later.
const breakable = `#!/bin/sh
cd "$(dirname "$0")"
[ -e broken ] && { echo "cannot load the level" >&2; exit 3; }
./server arena-server --port "$1" &
child=$!
trap 'kill -TERM $child; wait $child; exit' TERM
while kill -0 $child 2>/dev/null; do
  if [ -e broken ]; then kill -KILL $child; echo "cannot load the level" >&2; exit 3; fi
  sleep 0.05
done
wait $child
`

// TestRollout moves an alias between fleets of two builds with real game servers: first in steps and back, while the service is killed; then at once, until the
// old fleet has drained. When the new build breaks, the alias moves back automatically. A match that began earlier continues throughout.
func TestRollout(t *testing.T) {
	s := killableForTest(t)
	ctx, url := t.Context(), "http://"+s.address
	sdk, check := clientForTest(t, url, s.key)
	muster := func(args ...string) string {
		t.Helper()
		return mustRun(t, envOf(s.key), append(args, "--server", url, "--data", s.data)...)
	}
	_, err := sdk.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-rack")})
	check(err)
	fleetOf := func(launch, parameters string) *string {
		build, err := sdk.CreateBuild(ctx, &gamelift.CreateBuildInput{OperatingSystem: types.OperatingSystemAmazonLinux2023, StorageLocation: &types.S3Location{Bucket: aws.String("b"), Key: aws.String("k"), RoleArn: aws.String("arn:aws:iam::123456789012:role/r")}})
		check(err)
		created, err := sdk.CreateFleet(ctx, &gamelift.CreateFleetInput{
			Name: aws.String("f"), BuildId: build.Build.BuildId, EC2InstanceType: "c5.large", Locations: []types.LocationConfiguration{{Location: aws.String("custom-rack")}},
			RuntimeConfiguration: &types.RuntimeConfiguration{ServerProcesses: []types.ServerProcess{
				{LaunchPath: aws.String("/local/game/" + launch), Parameters: aws.String(parameters), ConcurrentExecutions: aws.Int32(3)},
			}},
		})
		check(err)
		id := created.FleetAttributes.FleetId
		_, err = sdk.UpdateFleetCapacity(ctx, &gamelift.UpdateFleetCapacityInput{FleetId: id, Location: aws.String("custom-rack"), DesiredInstances: aws.Int32(1), MaxSize: aws.Int32(1)})
		check(err)
		return id
	}
	before, after := fleetOf("server", "arena-server --port {port}"), fleetOf("breakable", "{port}")

	dir := t.TempDir()
	root := gameRoot(t, dir)
	if err := os.WriteFile(filepath.Join(root, "breakable"), []byte(breakable), 0o755); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 2)
	for i, id := range []*string{before, after} {
		name := fmt.Sprint("rack-", i)
		token := filepath.Join(dir, "join-"+name)
		put(t, token, muster("hosts", "join-token", "--location", "custom-rack", "--fleet", *id))
		go func() {
			done <- run(running, []string{"agent", "--server", url, "--join-token-file", token, "--compute-name", name, "--root", root, "--ip", "127.0.0.1",
				"--state-dir", filepath.Join(dir, name), "--ports", fmt.Sprintf("2%d000-2%d999", 4+i, 4+i), "--end-processes", "--kill-timeout", "1s", "--log-level", "error"}, nil, t.Output())
		}()
	}
	defer func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	for _, id := range []*string{before, after} {
		waittest.Until(t, "three server processes are ready", func() bool {
			out, err := sdk.DescribeFleetLocationUtilization(ctx, &gamelift.DescribeFleetLocationUtilizationInput{FleetId: id, Location: aws.String("custom-rack")})
			check(err)
			return aws.ToInt32(out.FleetUtilization.ActiveServerProcessCount) == 3
		})
		waittest.Until(t, "the fleet is active", func() bool {
			out, err := sdk.DescribeFleetAttributes(ctx, &gamelift.DescribeFleetAttributesInput{FleetIds: []string{*id}})
			check(err)
			return out.FleetAttributes[0].Status == types.FleetStatusActive
		})
	}
	made, err := sdk.CreateAlias(ctx, &gamelift.CreateAliasInput{Name: aws.String("arena-live"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeSimple, FleetId: before}})
	check(err)
	alias := made.Alias.AliasId

	// play creates a game session on the alias, and returns it when it is active.
	play := func() *types.GameSession {
		t.Helper()
		var session *types.GameSession
		waittest.Until(t, "a game session by the alias", func() bool {
			out, err := sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{AliasId: alias, Location: aws.String("custom-rack"), MaximumPlayerSessionCount: aws.Int32(2)})
			if err == nil {
				session = out.GameSession
			}
			return err == nil
		})
		return session
	}
	isActive := func(g *types.GameSession) bool {
		out, err := sdk.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: g.GameSessionId})
		check(err)
		return out.GameSessions[0].Status == types.GameSessionStatusActive
	}
	in := func(g *types.GameSession, want *string) {
		t.Helper()
		if *g.FleetId != *want {
			t.Errorf("game session %s is not in fleet %s", *g.GameSessionId, *want)
		}
	}
	pointsTo := func(want *string) {
		t.Helper()
		resolved, err := sdk.ResolveAlias(ctx, &gamelift.ResolveAliasInput{AliasId: alias})
		check(err)
		described, err := sdk.DescribeAlias(ctx, &gamelift.DescribeAliasInput{AliasId: alias})
		check(err)
		if *resolved.FleetId != *want || *described.Alias.RoutingStrategy.FleetId != *want || described.Alias.RoutingStrategy.Type != types.RoutingStrategyTypeSimple {
			t.Errorf("the alias points to %s (%+v), want %s", *resolved.FleetId, described.Alias.RoutingStrategy, *want)
		}
	}
	status := func() operator.Rollout {
		t.Helper()
		var list operator.RolloutList
		check(json.Unmarshal([]byte(muster("rollout", "status", "--alias", "arena-live", "--json")), &list))
		if len(list.Rollouts) != 1 {
			t.Fatalf("%+v", list)
		}
		return list.Rollouts[0]
	}
	told := func(text string) {
		t.Helper()
		for _, id := range []*string{before, after} {
			out, err := sdk.DescribeFleetEvents(ctx, &gamelift.DescribeFleetEventsInput{FleetId: id})
			check(err)
			if !slices.ContainsFunc(out.Events, func(e types.Event) bool { return strings.Contains(*e.Message, text) }) {
				t.Errorf("no event of fleet %s says %q", *id, text)
			}
		}
	}

	match := play()
	in(match, before)
	waittest.Until(t, "the match is active", func() bool { return isActive(match) })

	// By shares: the new fleet gets every second request, beginning with the first.
	muster("rollout", "--alias", "arena-live", "--to", *after, "--steps", "50,100", "--step-time", "1h")
	pointsTo(before)
	second := play()
	in(second, after)
	waittest.Until(t, "the match in the new fleet is active", func() bool { return isActive(second) }) // a game session is offered to its process once
	s.kill()
	s.start()
	waittest.Until(t, "the matches go on after the service has died", func() bool { return isActive(match) && isActive(second) })
	if x := status(); x.Phase != "MOVING" || x.Step != 1 || x.Percent != 50 || x.Requests != 1 || x.RequestsToNew != 1 {
		t.Errorf("after the restart the rollout is %+v", x)
	}
	in(play(), before)
	if _, err := sdk.UpdateAlias(ctx, &gamelift.UpdateAliasInput{AliasId: alias, RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeSimple, FleetId: after}}); err == nil || !strings.Contains(err.Error(), "--undo") {
		t.Errorf("UpdateAlias in the middle: %v", err)
	}
	if text := muster("explain", "alias", "arena-live"); !strings.Contains(text, "50 % of new game sessions go to fleet "+*after) || !strings.Contains(text, "has begun") {
		t.Errorf("muster explain alias says %s", text)
	}
	muster("rollout", "--alias", "arena-live", "--undo")
	if x := status(); x.Phase != "UNDONE" || !strings.Contains(x.Why, s.key.ID) {
		t.Errorf("after the undo the rollout is %+v", x)
	}
	told("is over, and new game sessions go to fleet " + *before)

	// At once, and wait until it is done: the old fleet drains, and its match continues.
	muster("rollout", "--alias", *alias, "--to", *after, "--step-time", "1s", "--wait")
	pointsTo(after)
	in(play(), after)
	desired := func() int32 {
		out, err := sdk.DescribeFleetLocationCapacity(ctx, &gamelift.DescribeFleetLocationCapacityInput{FleetId: before, Location: aws.String("custom-rack")})
		check(err)
		return *out.FleetCapacity.InstanceCounts.DESIRED
	}
	if n := desired(); n != 0 || !isActive(match) {
		t.Errorf("the old fleet wants %d hosts; its match is active: %v", n, isActive(match))
	}
	told("is done: every step is over")
	muster("rollout", "--alias", *alias, "--undo", "--wait")
	pointsTo(before)
	if n := desired(); n != 1 || !isActive(match) {
		t.Errorf("after the undo the old fleet wants %d hosts; its match is active: %v", n, isActive(match))
	}

	// The new build breaks: the alias moves back automatically.
	waittest.Until(t, "the new fleet has a server process", func() bool {
		_, err := runForTest(t, envOf(s.key), "rollout", "--alias", *alias, "--to", *after, "--step-time", "1h", "--server", url, "--data", s.data)
		return err == nil
	})
	pointsTo(after)
	put(t, filepath.Join(root, "broken"), "")
	waittest.Until(t, "the alias comes back", func() bool { return status().Phase == "UNDONE" })
	pointsTo(before)
	if x := status(); !strings.Contains(x.Why, "server processes of fleet "+*after+" ended with an error since the step began; the bound is 3 and 20 %") {
		t.Errorf("the reason is %q", x.Why)
	}
	told("ended with an error since the step began")
	if text := muster("explain", "fleet", *after); !strings.Contains(text, "rollout") || !strings.Contains(text, "UNDONE from fleet "+*before) {
		t.Errorf("muster explain fleet says %s", text)
	}
	in(play(), before)
	if !isActive(match) {
		t.Error("the match that began first is over")
	}
}
