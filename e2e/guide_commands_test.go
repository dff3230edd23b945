package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// A test runs every command in the README and the guides, or the command is listed here with the reason why not.

// wholePages are pages whose commands a test runs unchanged, one after another.
var wholePages = map[string]string{
	"docs/guide/queues.md":          "guideToQueues",
	"docs/guide/matchmaking.md":     "TestGuideToMatchmaking",
	"docs/guide/getting-started.md": "TestGuideToTheFirstSession",
	"docs/guide/search.md":          "TestGuideToTheFirstSession",
	"README.md":                     "TestREADME",
	"docs/guide/operations.md":      "TestGuidesToOperating",
	"docs/guide/security.md":        "TestGuidesToOperating",
	"docs/guide/notifications.md":   "TestGuidesToOperating",
	"docs/guide/game-servers.md":    "TestGuidesToOperating",
	"docs/guide/player-hooks.md":    "TestGuidesToOperating",
	"docs/guide/script-nodes.md":    "TestScriptNodesGuide, and TestGuidesToOperating for the key",
	"docs/guide/testing.md":         "TestVirtualClockGuide",
	"docs/guide/player-flow.md":     "TestGuideToPlayerFlow",
	"docs/guide/from-gamelift.md":   "TestGuideFromGameLift",
}

// notRun are the beginnings of commands that no test runs from the page, with the reason.
var notRun = map[string]map[string]string{
	"README.md": {
		"make run": "starts the demo, which TestDemo plays", "make test": "runs this test",
		"bin/muster serve":       "runs until it is stopped: the tests start it themselves",
		"bin/muster simulate":    "TestGuideToSimulate runs it on the page about it",
		"bin/muster keys create": "/var/lib is not the test's: TestGuidesToOperating makes keys", "bin/muster aws-profile": "as above; TestAWSProfile runs it",
		"bin/muster cluster": "as above; TestClusterCommands runs them on three nodes",
	},
	"docs/guide/getting-started.md": {
		"make run":         "starts the demo, which TestDemo plays",
		"bin/muster serve": "runs until it is stopped: the test starts it itself", "bin/muster aws-profile": "writes into the home directory: TestAWSProfile runs it",
		"aws --profile": "a CLI that ignores the endpoint in a profile would leave this machine", "bin/muster top": "runs until a key ends it: TestTop presses keys",
	},
	"docs/guide/install.md": {
		"muster keys create": "/etc/muster is not the test's: TestInstall of scripts/release makes a key so", "muster config": "as above",
		"export COMPOSE_PROFILES": "wants Docker: TestComposeBecomesACluster of scripts/charts starts nodes with these settings", "MUSTER_JOIN=": "as above",
		"muster hosts join-token": "for hosts in Kubernetes: TestTenHosts joins others so",
	},
	"docs/guide/sign-in.md": {
		"muster aws-profile": "writes into the home directory: TestMusterLogin runs it", "muster login": "needs a person: TestMusterLogin is one", "muster top": "runs until it is stopped",
		"muster logout": "TestMusterLogin runs it", "aws sso": "needs a person: TestSSOWithTheAWSCLI is one", "aws gamelift": "as above", "aws sts": "as above",
		"aws configure": "a part of aws login", "aws login": "Debian's AWS CLI has none: TestLogin of internal/sso is a program that speaks as it does",
	},
	"docs/guide/cluster.md": {
		"bin/muster demo": "TestDemoCluster plays it", "muster serve": "runs until it is stopped: TestDemoCluster starts nodes so",
		"muster cluster": "TestClusterCommands runs them on three nodes",
		"muster backup":  "/var/lib is not the test's: TestBackupRehearsal makes one at a follower",
	},
	"docs/guide/operations.md": {
		"aws gamelift upload-build": "./server is the reader's: TestUploadBuildWithTheCLI uploads one",
		"muster build push":         "as above; TestPushBuild pushes one",
		"muster config check":       "the file is the reader's: TestConfigCheck of cmd/muster checks some",
		"muster reload":             "the file is the reader's: TestReload changes one",
		"muster doctor":             "what it finds depends on the machine: TestDoctor runs it",
		"muster backup":             "/backup is not the test's: TestBackupRehearsal, TestBackupsInADirectory and TestBackupsInABucket make and restore them",
		"muster restore":            "as above",
		"muster export":             "/srv is not the test's: TestExport exports",
		"muster archive":            "wants the service to be stopped: TestDamagedArchive runs it",
		"muster serve":              "runs until it is stopped: the tests start it themselves",
		"muster explain ticket":     "TestTicketThatWaitsIsExplained asks about one", "muster explain player": "TestOperatorsReadWhatHappened asks with player flow",
		"muster explain alias": "TestRollout of cmd/muster asks about one",
		"muster explain party": "as for a player", "muster explain game-instance": "as for a player",
	},
	"docs/guide/console.md": {
		"muster keys create": "/var/lib is not the test's: TestConsoleInABrowser makes such a key",
		"muster console":     "the URL is the reader's: TestConsoleCommand of cmd/muster signs in with a link",
		"muster events":      "the objects are the reader's: TestFeedOfAGameSession of internal/operator asks about several kinds",
	},
	"docs/guide/proxies.md": {"muster serve": "runs until it is stopped: TestProxiesOfTheGuide starts one so"},
	"docs/guide/people.md":  {"muster serve": "the provider is the reader's: TestAnOpenIDProviderOfOthers starts one so", "muster people": "the people are the reader's: TestPeopleInABrowser and TestPeopleCommands run them"},
	"docs/guide/doctor.md":  {"muster doctor": "the URL is the reader's: TestDoctor runs it", "muster support-bundle": "writes a file into the present directory: TestSupportBundle makes some"},
	"docs/guide/top.md":     {"muster top": "runs until a key ends it, or its URL is the reader's: TestTop presses keys, TestTopWithoutTerminal prints"},
	"docs/guide/agent.md": {
		"muster agent":                      "runs until it is stopped: TestAgentWithService and TestHostJoins of cmd/muster run some",
		"muster hosts":                      "TestHostJoins of cmd/muster runs all of them",
		"muster drain":                      "TestGuidesToOperating drains a host",
		"aws gamelift get-game-session-log": "needs an agent: TestSessionLogs of cmd/muster fetches a log",
		"muster logs":                       "TestLogs of cmd/muster reads the output of processes of an agent",
	},
	"docs/guide/agones.md": {
		"muster agent": "runs until it is stopped: TestAgonesServer starts one so",
		"curl":         "the ports are those of a server process: TestAgonesServer asks the same",
	},
	"docs/guide/from-agones.md": {
		"muster serve": "runs until it is stopped: TestAgonesServer starts one so", "muster agent": "as above",
		"gl": "the fleet is the reader's: TestAgonesServer makes one, and a game session with game properties",
	},
	"docs/guide/ten-hosts.md": {
		"export": "the key is the reader's: TestTenHosts goes the whole way, in directories and namespaces of its own", "alias": "as above", "muster keys create": "as above",
		"muster serve": "as above", "muster build push": "as above", "muster hosts": "as above", "gl create-location": "as above", "gl create-fleet": "as above",
		"gl update-fleet-capacity": "as above", "gl create-game-session": "as above",
	},
	"docs/guide/limits.md":   {"muster serve": "the access key is the reader's: TestAttackKeyThatCreatesWithoutEnd starts one with quotas"},
	"docs/guide/audit.md":    {"muster audit": "TestAuditLog runs them", "muster serve": "the receivers are the reader's: TestAuditExport has some", "muster hosts": "rack-7 is the reader's: TestHosts of cmd/muster drains one", "muster keys": "as above; TestAuditLog changes keys"},
	"docs/guide/rollouts.md": {"muster rollout": "TestRollout of cmd/muster runs them with real game servers"},
	"docs/guide/security.md": {
		"muster serve":       "runs until it is stopped: the tests start it themselves",
		"muster keys create": "over the network: TestAttackKeysOverTheNetwork; with a directory it is run",
		"muster keys revoke": "over the network: TestAttackKeysOverTheNetwork; with a directory it is run",
		"muster keys limit":  "the key is the reader's: TestAttackLimitedExistingKeys limits one",
		"muster keys rotate": "the key is the reader's: TestRotateAccessKey rotates one",
		"AWS_PROFILE=":       "over the network: TestAttackKeysOverTheNetwork",
		"muster secret r":    "a rotation and a retirement are for good: TestSecretRotationUnderLoad has both", "muster secret list": "as above",
		"muster secret-key": "/etc and /var/lib are not the test's: TestSecretKeyFile runs them",
		"openssl":           "TestCredentials of the player API makes such certificates",
		"printf":            "part of the lines with openssl",
		"curl --cert":       "needs the certificate of the lines before",
	},
	"docs/guide/credentials.md": {
		"aws sts":     "the CLI of Debian 12 does not know the endpoint, and would leave this machine: TestAssumeRoleWithAWSCLI runs them with --endpoint-url",
		"muster keys": "the credentials are the reader's: TestTemporaryCredentials revokes some",
		"curl -sS":    "runs in a job of GitHub Actions",
	},
	"docs/guide/policies.md": {
		"muster policies": "the key is the reader's: TestPoliciesAtEveryDoor attaches policies",
		"muster access":   "as above",
	},
	"docs/guide/metrics.md": {
		"export AWS_ENDPOINT_URL_CLOUDWATCH=": "the CLI of Debian 12 does not know it, and would leave this machine",
		"aws cloudwatch":                      "as above: TestMetricsWithAWSCLI runs them with --endpoint-url",
	},
	"docs/guide/notifications.md": {
		"muster serve":                           "runs until it is stopped: the tests start it themselves",
		"aws gamelift update-game-session-queue": "the queue is the reader's: the tests of internal/notify name topics",
	},
	"docs/guide/player-hooks.md": {"muster serve": "runs until it is stopped: the tests start it themselves"},
	"docs/guide/game-servers.md": {"SSL_CERT_FILE=": "the game server is the reader's: TestServerSDKOverTLS starts one so"},
	"docs/guide/testing.md":      {"muster serve": "runs until it is stopped: TestVirtualClockGuide starts it itself"},
	"docs/guide/rule-sets.md":    {"muster lint": "the file is the reader's: TestLintCommand lints others"},
	"docs/guide/simulate.md":     {"muster simulate": "TestGuideToSimulate runs the one whose output the page shows"},
	"docs/guide/player-flow.md":  {"muster serve": "runs until it is stopped: TestGuideToPlayerFlow starts it itself"},
}

var shellCommand = regexp.MustCompile(`^(gl|aws|muster|bin/[a-z-]+|arena-server|arena-client|curl|for|alias|export|make|openssl|printf|sudo|[A-Z_]+=(\S+ [a-z./]|\$\()\S*) `)

// shellCommands returns the commands of a page in order: from indented lines and from fenced shell blocks.
func shellCommands(t *testing.T, page string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	must(t, err)
	fence, open := "", false
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\r", "")) {
		line = strings.TrimRight(line, "\n")
		if info, ok := strings.CutPrefix(line, "```"); ok {
			if fence == "" {
				fence = "```" + info
			} else {
				fence = ""
			}
			open = false
			continue
		}
		code, is := strings.CutPrefix(line, "    ")
		if fence != "" {
			code, is = line, slices.Contains([]string{"```sh", "```console", "```bash"}, fence)
			code = strings.TrimPrefix(code, "$ ")
		}
		switch {
		case !is:
			open = false
			continue
		case open:
			commands[len(commands)-1] += "\n" + code
		case shellCommand.MatchString(code + " "):
			commands = append(commands, code)
		default:
			continue
		}
		open = strings.HasSuffix(code, `\`)
	}
	return commands
}

// exempt returns the entry in notRun that a command of a page begins with.
func exempt(page, command string) string {
	for beginning := range notRun[page] {
		if strings.HasPrefix(command, beginning) && !(page == "docs/guide/security.md" && strings.Contains(command, "--data DIR")) {
			return beginning
		}
	}
	return ""
}

func TestEveryCommandOfTheGuidesIsAccountedFor(t *testing.T) {
	pages, err := filepath.Glob("../docs/guide/*.md")
	must(t, err)
	pages = append(pages, "../README.md")
	used, commands := map[string]bool{}, 0
	for _, page := range pages {
		page = strings.TrimPrefix(filepath.ToSlash(page), "../")
		for _, command := range shellCommands(t, page) {
			commands++
			beginning := exempt(page, command)
			used[page+" "+beginning] = true
			if beginning == "" && wholePages[page] == "" {
				t.Errorf("%s: no test runs %q: run it, or say in notRun why not", page, command)
			}
			if strings.Contains(command, "muster() ") || strings.Contains(command, "muster create-") {
				t.Errorf("%s: %q: the AWS CLI with the endpoint is called gl, and muster is the program", page, command)
			}
		}
	}
	if commands < 120 {
		t.Errorf("found %d commands: are they written in another way?", commands)
	}
	for page, reasons := range notRun {
		for beginning := range reasons {
			if !used[page+" "+beginning] {
				t.Errorf("notRun: %s has no command that begins with %q", page, beginning)
			}
		}
	}
}

// shellFor runs a script with the setup of a guide's reader: an environment without settings, gl and muster, in the repository. The service replaces
// 127.0.0.1:8080 on the pages.
func (c *cli) shellFor(t *testing.T, script string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eo pipefail; shopt -s expand_aliases\n"+strings.ReplaceAll(script, "127.0.0.1:8080", c.address))
	cmd.Dir = ".."
	bin := t.TempDir()
	must(t, os.Symlink(musterBinary, filepath.Join(bin, "muster")))
	must(t, os.Symlink(awsCLI(t), filepath.Join(bin, "aws")))
	cmd.Env = append(slices.Clone(c.env), append(hurried, "PATH="+bin+":"+os.Getenv("PATH"), "MUSTER_LISTEN="+c.address, "MUSTER_DATA="+c.data, "AWS_DEFAULT_REGION="+region)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// untilMetric returns a shell line that waits until a metric has a series with a value.
func untilMetric(name, labels, value string) string {
	return fmt.Sprintf("until curl -s http://127.0.0.1:8080/metrics | grep -q '^%s{.*%s.*} %s$'; do sleep 0.1; done\n", name, labels, value)
}

// The commands of getting started and, on the same fleet, of the page on search.
func TestGuideToTheFirstSession(t *testing.T) {
	t.Parallel()
	c := newCLI(startService(t))
	script := "trap 'kill $(jobs -p)' EXIT\n"
	for _, page := range []string{"docs/guide/getting-started.md", "docs/guide/search.md"} {
		for _, command := range shellCommands(t, page) {
			switch {
			case exempt(page, command) != "":
				continue
			case strings.HasPrefix(command, "bin/arena-server "):
				server := strings.NewReplacer("bin/arena-server", "muster arena-server", "-port 7777", "-port 0 -bind 127.0.0.1 -log=error").Replace(command)
				command = strings.Repeat(server+"\n", 4) + untilMetric("muster_server_processes_available", "", "4") // three for the second page
			case strings.HasPrefix(command, "bin/arena-client "):
				at := "$(gl describe-player-sessions --player-id PlayerOne --query 'PlayerSessions[0].[IpAddress,Port]' --output text | tr '\t' ':')"
				command = strings.NewReplacer("bin/arena-client", "muster arena-client", "127.0.0.1:7777", at).Replace(command) +
					"\nuntil gl describe-player-sessions --player-id PlayerOne | grep -q COMPLETED; do sleep 0.1; done" // the game server tells the service
			case strings.HasPrefix(command, "gl search-game-sessions"):
				script += untilMetric("muster_game_sessions", `status="ACTIVE"`, "4")
			}
			script += fmt.Sprintf("echo '== %s'\n%s\n", strings.ReplaceAll(strings.Split(command, "\n")[0], "'", ""), command)
		}
	}
	out, err := c.shellFor(t, script)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantAll(t, out, `"PlayerId": "PlayerOne"`, `"Status": "RESERVED"`, "said PlayerOne: hello", `"COMPLETED"`, "Ann's duel\t127.0.0.1\t")
	_, races, _ := strings.Cut(out, "--sort-expression")
	if late, big := strings.Index(races, "Late race"), strings.Index(races, "Big race"); late < 0 || big < late {
		t.Errorf("the newest race is not the first:\n%s", races)
	}
}

// The commands of the README, verbatim.
func TestREADME(t *testing.T) {
	t.Parallel()
	g := &guide{cli: newCLI(startService(t)), ids: map[string]string{}, answers: map[string]object{}}
	for _, command := range shellCommands(t, "README.md") {
		switch {
		case exempt("README.md", command) != "" || strings.HasPrefix(command, "export ") || strings.HasPrefix(command, "alias "):
		case strings.HasPrefix(command, "bin/arena-server "):
			g.do(strings.TrimSuffix(strings.TrimPrefix(command, "bin/"), " -port 7777"))
			waittest.Until(t, "the game server to be free", func() bool {
				n, _ := g.exposition(t).value("muster_server_processes_available", "fleet_id", g.ids["FLEET"], "location", "custom-home")
				return n == 1
			})
		default:
			g.do(command)
		}
	}
	g.expect(g.answers["describe-player-sessions"], map[string]any{"PlayerSessions.PlayerId": "PlayerOne", "PlayerSessions.Status": "RESERVED"})
}

// The commands of the pages for operators, with values for their words in capitals.
func TestGuidesToOperating(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	_, session := p.hosting(sdkOptions{process: "PROCESS"}, 4)
	_, err := s.api().CreateGameSessionQueue(t.Context(), &gamelift.CreateGameSessionQueueInput{Name: aws.String("q"),
		Destinations: []types.GameSessionQueueDestination{{DestinationArn: aws.String("arn:aws:gamelift:us-east-1::fleet/" + p.fleet)}}})
	must(t, err)
	_, err = s.api().StartGameSessionPlacement(t.Context(), &gamelift.StartGameSessionPlacementInput{PlacementId: aws.String("ID"), GameSessionQueueName: aws.String("q"), MaximumPlayerSessionCount: aws.Int32(2)})
	must(t, err)
	c := newCLI(s)
	words := regexp.MustCompile(`\b(FLEET|COMPUTE|HOST|ARN|DIR)\b|MUST…|explain fleet ID`)
	key := ""
	says := map[string]string{
		"muster explain fleet": "Start more server processes", "muster explain compute": "hosts a game session", "muster explain process": "hosts game session",
		"muster explain placement": "NO_FREE_PROCESS", "muster explain game-session": "is ACTIVE", "muster config": "MUSTER_LISTEN", "muster drain": "gets no new game sessions",
		"muster computes": "has a new auth token", "curl --aws-sigv4": `"kind":"placement"`, "aws gamelift get-compute-auth-token": "AuthToken",
	}
	heard := map[string]bool{}
	for _, page := range []string{"operations", "game-servers", "notifications", "player-hooks", "script-nodes", "security"} {
		page = "docs/guide/" + page + ".md"
		for _, command := range shellCommands(t, page) {
			if exempt(page, command) != "" || strings.HasPrefix(command, "curl -s") { // TestScriptNodesGuide
				continue
			}
			line := words.ReplaceAllStringFunc(command, func(word string) string {
				return map[string]string{"FLEET": p.fleet, "COMPUTE": p.compute, "HOST": p.compute, "ARN": session, "DIR": s.data, "MUST…": key, "explain fleet ID": "explain fleet " + p.fleet}[word]
			})
			line = strings.ReplaceAll(line, "muster-ca.pem", filepath.Join(t.TempDir(), "ca.pem"))
			line = regexp.MustCompile(`^aws gamelift`).ReplaceAllString(line, "aws --endpoint-url http://127.0.0.1:8080 gamelift")
			if strings.HasPrefix(line, "muster drain ") {
				line += " --no-wait"
			}
			out, err := c.shellFor(t, line)
			if err != nil {
				t.Errorf("%s: %s: %v\n%s", page, command, err, out)
			}
			if made := regexp.MustCompile(`\bMUST[A-Z0-9]{8,}`).FindString(out); made != "" && strings.Contains(line, "keys create") {
				key = made
			}
			for beginning, want := range says {
				if strings.HasPrefix(command, beginning) {
					heard[beginning] = true
					if !strings.Contains(out, want) {
						t.Errorf("%s: %s: want %q in\n%s", page, command, want, out)
					}
				}
			}
		}
	}
	for beginning := range says {
		if !heard[beginning] {
			t.Errorf("no page has a command that begins with %q", beginning)
		}
	}
}
