package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/agent/joining"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/hostproof"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/waittest"
)

// TestHostJoins: a machine joins with a token, without an access key. A fleet of a build gets it and its processes, game sessions run on it, and all of it ends when
// an operator revokes the host.
func TestHostJoins(t *testing.T) {
	data, address, keys := servedForTest(t, nil)
	ctx, url := t.Context(), "http://"+address
	sdk, check := clientForTest(t, url, keys[identity.Admin])
	admin := envOf(keys[identity.Admin])
	muster := func(args ...string) string {
		t.Helper()
		return mustRun(t, admin, append(args, "--listen", address, "--data", data)...)
	}
	list := func() (all operator.HostList) {
		t.Helper()
		check(json.Unmarshal([]byte(muster("hosts", "--json")), &all))
		return all
	}

	_, err := sdk.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-rack")})
	check(err)
	build, err := sdk.CreateBuild(ctx, &gamelift.CreateBuildInput{OperatingSystem: types.OperatingSystemAmazonLinux2023, StorageLocation: &types.S3Location{Bucket: aws.String("b"), Key: aws.String("k"), RoleArn: aws.String("arn:aws:iam::123456789012:role/r")}})
	check(err)
	created, err := sdk.CreateFleet(ctx, &gamelift.CreateFleetInput{
		Name: aws.String("f"), BuildId: build.Build.BuildId, EC2InstanceType: "c5.large", Locations: []types.LocationConfiguration{{Location: aws.String("custom-rack")}},
		RuntimeConfiguration: &types.RuntimeConfiguration{ServerProcesses: []types.ServerProcess{
			{LaunchPath: aws.String("/local/game/server"), Parameters: aws.String("arena-server --port {port}"), ConcurrentExecutions: aws.Int32(2)},
		}},
	})
	check(err)
	fleet := created.FleetAttributes.FleetId
	_, err = sdk.UpdateFleetCapacity(ctx, &gamelift.UpdateFleetCapacityInput{FleetId: fleet, Location: aws.String("custom-rack"), DesiredInstances: aws.Int32(1), MaxSize: aws.Int32(2)})
	check(err)

	token := muster("hosts", "join-token", "--location", "custom-rack", "--uses", "1", "--valid", "10m")
	if x := list().Tokens; len(x) != 1 || x[0].Uses != 1 || x[0].Token != "" || strings.Contains(muster("hosts"), strings.TrimSpace(token)) {
		t.Errorf("join tokens %+v", x)
	}
	dir := t.TempDir()
	tokenFile, root := filepath.Join(dir, "join"), gameRoot(t, dir)
	put(t, tokenFile, token)
	running, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- run(running, []string{"agent", "--server", url, "--join-token-file", tokenFile, "--compute-name", "rack-1", "--root", root, "--ip", "127.0.0.1",
			"--state-dir", filepath.Join(dir, "agent"), "--ports", "23000-23999", "--end-processes", "--kill-timeout", "1s", "--log-level", "error"}, nil, io.Discard)
	}()
	var session *types.GameSession
	waittest.Until(t, "a game session on the host", func() bool {
		out, err := sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{FleetId: fleet, Location: aws.String("custom-rack"), MaximumPlayerSessionCount: aws.Int32(2)})
		if err == nil {
			session = out.GameSession
		}
		return err == nil
	})
	if *session.Port < 23000 || *session.Port > 23999 {
		t.Errorf("port %d, want one of the agent's", *session.Port)
	}
	instances := func() []types.Instance {
		out, err := sdk.DescribeInstances(ctx, &gamelift.DescribeInstancesInput{FleetId: fleet, Location: aws.String("custom-rack")})
		check(err)
		return out.Instances
	}
	waittest.Until(t, "the instance is active", func() bool {
		all := instances()
		return len(all) == 1 && *all[0].InstanceId == "rack-1" && all[0].Status == types.InstanceStatusActive
	})
	waittest.Until(t, "the fleet is active", func() bool {
		out, err := sdk.DescribeFleetAttributes(ctx, &gamelift.DescribeFleetAttributesInput{FleetIds: []string{*fleet}})
		check(err)
		return out.FleetAttributes[0].Status == types.FleetStatusActive
	})
	var host operator.Host
	waittest.Until(t, "the list shows both processes, the game session and what the host uses", func() bool {
		all := list()
		if len(all.Hosts) != 1 || len(all.Tokens) != 0 {
			return false
		}
		host = all.Hosts[0]
		return host.Processes == 2 && host.GameSessions == 1 && host.Metrics != nil
	})
	if host.State != "ready" || host.Serves != *fleet || host.Compute != "rack-1" || host.Ports != 1000 || host.IP != "127.0.0.1" || host.Version == "" {
		t.Errorf("the host is %+v", host)
	}
	if text := muster("hosts"); !strings.Contains(text, host.ID) || !strings.Contains(text, "rack-1") {
		t.Errorf("the table is %s", text)
	}
	secret, err := os.Stat(filepath.Join(dir, "agent", joining.FileName))
	check(err)
	if secret.Mode().Perm() != 0o600 {
		t.Errorf("the file with the host's key has the mode %v", secret.Mode())
	}

	// A token that is used up and one that never was get the same answer.
	answers := map[string]bool{}
	for _, wrong := range []string{strings.TrimSpace(token), "muster-join.0123456789abcdef.none", "", strings.Repeat("x", 1000)} {
		status, text := postJoin(t, url, hostproof.Join{Token: wrong, Name: "rack-2", Key: make([]byte, 32)})
		if status != http.StatusForbidden {
			t.Errorf("join with %.20q: %d %s", wrong, status, text)
		}
		answers[text] = true
	}
	if len(answers) != 1 {
		t.Errorf("bad tokens get different answers: %v", answers)
	}
	if status, _ := postJoin(t, url, hostproof.Join{Token: strings.Repeat("x", 5000)}); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d", status)
	}

	spare := muster("hosts", "join-token", "--fleet", *fleet)
	muster("hosts", "revoke-token", list().Tokens[0].ID)
	if status, _ := postJoin(t, url, hostproof.Join{Token: strings.TrimSpace(spare), Name: "rack-2", Location: "custom-rack", Key: make([]byte, 32)}); status != http.StatusForbidden {
		t.Errorf("a revoked token: %d", status)
	}

	muster("hosts", "drain", "rack-1")
	waittest.Until(t, "the instance leaves", func() bool {
		all := instances()
		return len(all) == 1 && all[0].Status == types.InstanceStatusTerminating
	})
	muster("hosts", "drain", "--undo", host.ID)
	waittest.Until(t, "the instance stays after all", func() bool {
		all := instances()
		return len(all) == 1 && all[0].Status == types.InstanceStatusActive && list().Hosts[0].Processes == 2
	})
	out, err := sdk.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: session.GameSessionId})
	check(err)
	if status := out.GameSessions[0].Status; status != types.GameSessionStatusActive {
		t.Errorf("the game session is %s after a drain that was undone", status)
	}

	if got := muster("hosts", "revoke-token", "--hosts", host.JoinToken); got != "join token "+host.JoinToken+" is revoked, and 1 host that joined with it was revoked: its game sessions have ended\n" {
		t.Errorf("a token that is used up, with its hosts: %s", got)
	}
	waittest.Until(t, "the instance and the game session are gone, and the agent is not connected", func() bool {
		out, err := sdk.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: session.GameSessionId})
		check(err)
		h := list().Hosts[0]
		return len(instances()) == 0 && out.GameSessions[0].Status == types.GameSessionStatusTerminated && h.State == "revoked" && h.Metrics == nil
	})
	key := list().Hosts[0]
	if key.RevokedBy != keys[identity.Admin].ID {
		t.Errorf("revoked by %q", key.RevokedBy)
	}
	stop()
	check(<-done)
}

func postJoin(t *testing.T, url string, in hostproof.Join) (status int, text string) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(url+hostproof.JoinPath, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(all)
}

// gameRoot makes a directory with this program as the game's server.
func gameRoot(t *testing.T, dir string) string {
	t.Helper()
	root := filepath.Join(dir, "game")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, filepath.Join(root, "server")) != nil { // another file system
		text, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "server"), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(asMuster, "1") // for the game server
	return root
}

// TestHostsThatAreNotMeasured: an agent on Windows or macOS reports no load and no memory.
func TestHostsThatAreNotMeasured(t *testing.T) {
	h := &operator.Host{Ports: 10}
	for _, x := range []struct {
		metrics *agentproto.HostMetrics
		want    string
	}{
		{nil, "- - 10"},
		{&agentproto.HostMetrics{PortsUsed: 2}, "- - 2 of 10"},
		{&agentproto.HostMetrics{PortsUsed: 2, Load1: 0.5, MemoryTotalBytes: 8 << 30, MemoryUsedBytes: 1 << 30}, "0.50 1024 of 8192 MiB 2 of 10"},
	} {
		h.Metrics = x.metrics
		if load, memory, ports := used(h); load+" "+memory+" "+ports != x.want {
			t.Errorf("got %s %s %s, want %s", load, memory, ports, x.want)
		}
	}
}
