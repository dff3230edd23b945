package e2e

import (
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/porttest"
)

// troubles returns the first lines of the console's overview as plain text, each with the cause and the next step.
func (s *service) troubles() (lines []string) {
	s.t.Helper()
	resp, err := http.Get(s.url() + "/console/")
	must(s.t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	must(s.t, err)
	_, list, ok := strings.Cut(string(page), `<ul class="attention">`)
	if !ok {
		return nil
	}
	list, _, _ = strings.Cut(list, "</ul>")
	for _, line := range strings.Split(list, "<li>")[1:] {
		lines = append(lines, html.UnescapeString(strings.TrimSpace(tag.ReplaceAllString(line, ""))))
	}
	return lines
}

var tag = regexp.MustCompile(`<[^>]*>`)

// names waits until a line of the overview contains the words of the cause and of the next step.
func (s *service) names(cause, step string) {
	s.t.Helper()
	s.namesAfter(func() {}, cause, step)
}

// namesAfter is names, and calls do before each look.
func (s *service) namesAfter(do func(), cause, step string) {
	s.t.Helper()
	var last []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		do()
		last = s.troubles()
		for _, line := range last {
			if at := strings.Index(line, cause); at >= 0 && strings.Contains(line[at:], step) {
				return
			}
		}
	}
	s.t.Fatalf("the overview does not say %q and then %q:\n%s", cause, step, strings.Join(last, "\n"))
}

// explains checks that muster explain gives the same reason.
func (s *service) explains(kind, id, why string) {
	s.t.Helper()
	if out := s.command("explain", kind, id, "--data", s.data, "--listen", s.address); !strings.Contains(out, why) {
		s.t.Errorf("muster explain %s %s does not say %q:\n%s", kind, id, why, out)
	}
}

// agent runs an agent on the place's compute, with one server process with this launch path and parameters in a directory. The agent and its server processes end with the test.
func (p *place) agent(root, launch, parameters string) {
	p.t.Helper()
	dir := p.t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(p.t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	_, port, _ := net.SplitHostPort(porttest.Free(p.t))
	first, err := strconv.Atoi(port)
	must(p.t, err)
	cmd := exec.Command(musterBinary, "agent", "--server", p.url(), "--fleet", p.fleet, "--compute-name", p.compute, "--token-file", file("token", p.token), "--root", root,
		"--state-dir", filepath.Join(dir, "state"), "--ports", fmt.Sprintf("%d-%d", first, first+100), "--kill-timeout", "1s", "--end-processes",
		"--runtime-config", file("runtime.json", fmt.Sprintf(`{"ServerProcesses":[{"LaunchPath":%q,"Parameters":%q,"ConcurrentExecutions":1}]}`, launch, parameters)))
	cmd.Env = cleanEnvironment()
	a := run(p.t, cmd)
	p.t.Cleanup(func() {
		if a.cmd.Process.Signal(syscall.SIGTERM) == nil {
			a.exitCode()
		}
	})
}

// Ten faults, each in its own service: the overview names the cause and the next step, and muster explain of the object gives the same reason.
func TestOverviewNamesFaults(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T){
		"InitSDK is never called": func(t *testing.T) {
			p := startService(t).prepare()
			root := t.TempDir()
			must(t, os.WriteFile(filepath.Join(root, "server"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o755))
			p.agent(root, "server", "")
			p.names("Fleet dev can start no game session in custom-home: no server process is connected in custom-home, and the server process that runs on compute DesktopPC has not called InitSDK",
				"The game server must call InitSDK")
			p.explains("fleet", p.fleet, "has not called InitSDK")
			p.explains("compute", p.compute, "has not called InitSDK")
		},
		"the port is taken by another process": func(t *testing.T) {
			p := startService(t).prepare()
			other, err := net.Listen("tcp", porttest.Free(t))
			must(t, err)
			t.Cleanup(func() { other.Close() })
			p.agent(filepath.Dir(arenaServerBinary), filepath.Base(arenaServerBinary), "--bind 127.0.0.1 --port "+strconv.Itoa(other.Addr().(*net.TCPAddr).Port))
			p.names("address already in use", "Another program on the host is using the port. End it")
			p.explains("fleet", p.fleet, "address already in use")
		},
		"every process is unhealthy": func(t *testing.T) {
			p := startService(t, "--virtual-clock").prepare()
			for _, id := range []string{"process-1", "process-2"} {
				server := p.dial(id, "")
				must(t, server.Activate(t.Context(), 7777))
				must(t, server.Heartbeat(t.Context(), false))
			}
			p.names("none of the 2 server processes in custom-home is free: 2 are unhealthy or silent", "OnHealthCheck returns false")
			p.explains("fleet", p.fleet, "2 are unhealthy or silent")
		},
		"a rule is impossible": func(t *testing.T) {
			s := startService(t)
			api := s.api()
			_, err := api.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("experts"), RuleSetBody: aws.String(`{"ruleLanguageVersion":"1.0",
				"playerAttributes":[{"name":"skill","type":"number"}],"teams":[{"name":"red","minPlayers":1,"maxPlayers":1},{"name":"blue","minPlayers":1,"maxPlayers":1}],
				"rules":[{"name":"OnlyExperts","type":"comparison","measurements":["flatten(teams[*].players.attributes[skill])"],"referenceValue":1000000,"operation":">="}]}`)})
			must(t, err)
			_, err = api.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
				Name: aws.String("ranked"), RuleSetName: aws.String("experts"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600), FlexMatchMode: types.FlexMatchModeStandalone,
			})
			must(t, err)
			for _, who := range []string{"ann", "bob"} {
				_, err = api.StartMatchmaking(t.Context(), &gamelift.StartMatchmakingInput{ConfigurationName: aws.String("ranked"), TicketId: aws.String("ticket-" + who), Players: []types.Player{{
					PlayerId: aws.String(who), PlayerAttributes: map[string]types.AttributeValue{"skill": {N: aws.Float64(10)}},
				}}})
				must(t, err)
			}
			s.names("Matchmaking ranked finds no match for ticket ticket-ann", "Correct or relax rule OnlyExperts")
			s.explains("ticket", "ticket-ann", "OnlyExperts rejects it with any partner")
		},
		"the latency cap is too low": func(t *testing.T) {
			p := startService(t).prepare()
			_, err := p.api().CreateGameSessionQueue(t.Context(), &gamelift.CreateGameSessionQueueInput{
				Name: aws.String("strict"), TimeoutInSeconds: aws.Int32(600), PlayerLatencyPolicies: []types.PlayerLatencyPolicy{{MaximumIndividualPlayerLatencyMilliseconds: aws.Int32(1)}},
				Destinations: []types.GameSessionQueueDestination{{DestinationArn: aws.String("arn:aws:gamelift:us-east-1::fleet/" + p.fleet)}},
			})
			must(t, err)
			_, err = p.api().StartGameSessionPlacement(t.Context(), &gamelift.StartGameSessionPlacementInput{
				PlacementId: aws.String("placement-1"), GameSessionQueueName: aws.String("strict"), MaximumPlayerSessionCount: aws.Int32(2),
				PlayerLatencies: []types.PlayerLatency{{PlayerId: aws.String("ann"), RegionIdentifier: &p.location, LatencyInMilliseconds: aws.Float32(40)}},
			})
			must(t, err)
			const why = "the latency cap of 1 ms excludes its only location (a player has 40 ms"
			p.names("Queue strict has no location for placement placement-1: "+why, "Raise MaximumIndividualPlayerLatencyMilliseconds")
			p.explains("placement", "placement-1", why)
		},
		"an alias leads to an empty fleet": func(t *testing.T) {
			p := startService(t).prepare()
			fleet, err := p.api().CreateFleet(t.Context(), &gamelift.CreateFleetInput{Name: aws.String("void"), ComputeType: types.ComputeTypeAnywhere, Locations: []types.LocationConfiguration{{Location: &p.location}}})
			must(t, err)
			alias, err := p.api().CreateAlias(t.Context(), &gamelift.CreateAliasInput{Name: aws.String("live"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeSimple, FleetId: fleet.FleetAttributes.FleetId}})
			must(t, err)
			p.names("Alias live leads to fleet void ("+*fleet.FleetAttributes.FleetId+"), which is empty: no compute is registered in custom-home", "aws gamelift update-alias --alias-id "+*alias.Alias.AliasId)
			p.explains("alias", "live", "which is empty: no compute is registered in custom-home")
		},
		"the token has expired": func(t *testing.T) {
			p := startService(t, "--virtual-clock").prepare()
			p.advance(4 * time.Hour)
			p.names("the newest auth token of compute DesktopPC has expired", "aws gamelift get-compute-auth-token --fleet-id "+p.fleet+" --compute-name DesktopPC")
			p.explains("fleet", p.fleet, "the newest auth token of compute DesktopPC has expired")
		},
		"the disk is full": func(t *testing.T) {
			s := newService(t)
			smallDisk(t, s.data, 256<<20)
			t.Cleanup(s.kill) // before the disk goes
			s.start()
			ballast := fillDisk(t, s.data)
			s.names("The service refuses changes: ", "Free space on the disk of the data directory")
			must(t, os.Remove(ballast))
		},
		"a host is silent": func(t *testing.T) {
			s := startService(t, "--virtual-clock")
			p := s.prepare()
			dir := t.TempDir()
			token := filepath.Join(dir, "join")
			must(t, os.WriteFile(token, []byte(s.command("hosts", "join-token", "--location", p.location, "--data", s.data, "--listen", s.address)), 0o600))
			logs := newOutput()
			agent := exec.Command(musterBinary, "agent", "--server", s.url(), "--join-token-file", token, "--compute-name", "rack-1", "--ip", "127.0.0.1", "--state-dir", filepath.Join(dir, "agent"))
			agent.Env, agent.Stdout, agent.Stderr = cleanEnvironment(), logs, logs
			must(t, agent.Start())
			ready := false
			for end := time.Now().Add(patience); !ready && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				ready = strings.Contains(s.command("hosts", "--data", s.data, "--listen", s.address), "ready")
			}
			must(t, agent.Process.Kill())
			_ = agent.Wait() // it was killed
			if !ready {
				t.Fatalf("the host is not ready:\n%s", logs.tail(20))
			}
			s.namesAfter(func() { s.advance(2 * time.Minute) }, "Host rack-1 has been silent since", "Check the machine, its network and the log of muster agent there")
		},
		"players lose their game": func(t *testing.T) {
			p := startService(t, "--virtual-clock").prepare()
			server := p.dial("process-1", "")
			game := server.host(t, 4)
			for _, who := range []string{"ann", "bob"} {
				must(t, server.AcceptPlayer(t.Context(), game, p.mustReserve(game, who)))
			}
			server.Drop()
			p.namesAfter(func() { p.advance(time.Minute) }, "2 players lost their game in fleet dev: server process crashed", "Read the last output of the server process")
			p.explains("fleet", p.fleet, "2 players lost game session ")
		},
	} {
		t.Run(name, plant)
	}
}
