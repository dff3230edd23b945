package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/waittest"
)

// TestAgentWithService: the agent runs the arena's game server on a host of a fleet. A game session starts on it, the process is killed, and the session
// ends with it, long before the link's grace is over.
func TestAgentWithService(t *testing.T) {
	dir, address, keys := servedForTest(t, nil)
	ctx, url := t.Context(), "http://"+address
	sdk, check := clientForTest(t, url, keys[identity.Admin])
	fleet := fleetForTest(t, sdk)

	root := gameRoot(t, dir)
	file := filepath.Join(dir, "runtime.json")
	check(os.WriteFile(file, []byte(`{"ServerProcesses":[{"LaunchPath":"server","Parameters":"arena-server --port {port}","ConcurrentExecutions":1}]}`), 0o600))
	stop, done := agentForTest(t, keys[identity.Admin], dir, "--server", url, "--fleet", fleet, "--root", root, "--runtime-config", file, "--ports", "22000-22999")
	defer stop()

	var session *types.GameSession
	waittest.Until(t, "a game session on the agent's process", func() bool {
		out, err := sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{FleetId: &fleet, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2)})
		if err == nil {
			session = out.GameSession
		}
		return err == nil
	})
	if *session.Port < 22000 || *session.Port > 22999 {
		t.Errorf("port %d, want one of the agent's", *session.Port)
	}
	status := func() types.GameSessionStatus {
		out, err := sdk.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: session.GameSessionId})
		check(err)
		return out.GameSessions[0].Status
	}
	waittest.Until(t, "the game session is active", func() bool { return status() == types.GameSessionStatusActive })

	state, err := os.ReadFile(filepath.Join(dir, "agent", "agent.json"))
	check(err)
	_, after, _ := strings.Cut(string(state), `"pid":`)
	pid := 0
	for _, digit := range after {
		if digit < '0' || digit > '9' {
			break
		}
		pid = pid*10 + int(digit-'0')
	}
	process, err := os.FindProcess(pid)
	check(err)
	check(process.Signal(syscall.SIGKILL))
	began := time.Now()
	waittest.Until(t, "the game session ends with its process", func() bool { s := status(); return s != types.GameSessionStatusActive })
	t.Logf("from the death of the process to the end of the game session: %v", time.Since(began).Round(time.Millisecond))

	waittest.Until(t, "another process", func() bool {
		_, err := sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{FleetId: &fleet, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2)})
		return err == nil
	})
	stop()
	check(<-done)
	waittest.Until(t, "the compute is deregistered", func() bool {
		out, err := sdk.ListCompute(ctx, &gamelift.ListComputeInput{FleetId: &fleet})
		check(err)
		return len(out.ComputeList) == 0
	})
}
