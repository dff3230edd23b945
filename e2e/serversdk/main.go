// Command sdkserver is a remote-controlled game server: it makes calls of the official server SDK exactly as its standard
// input requests, and reports on its standard output, so that a test can play any server, also a bad one.
//
// Each input line is a JSON array of words, a call and its arguments; each gets one line {"reply": …}. Pushes from
// the service appear in between as {"event": …}. The connection comes from the GAMELIFT_SDK_* variables.
//
// It is a separate module, so that the SDK is built at the version that go.mod, or v5.4.0.mod, names, and stays
// out of Muster's own dependencies.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/common"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/server"
)

// line is a line of this program's output.
type line struct {
	Reply   string                   `json:"reply,omitempty"`
	Event   string                   `json:"event,omitempty"`
	Error   string                   `json:"error,omitempty"`
	Type    int                      `json:"type"` // the SDK's error type; -1: no error of the SDK
	Value   string                   `json:"value,omitempty"`
	Session *model.GameSession       `json:"session,omitempty"`
	Players []model.PlayerSession    `json:"players,omitempty"`
	Update  *model.UpdateGameSession `json:"update,omitempty"`
}

var (
	out     = json.NewEncoder(os.Stdout)
	outLock sync.Mutex
	healthy atomic.Bool
)

func say(l line) {
	outLock.Lock()
	defer outLock.Unlock()
	if err := out.Encode(l); err != nil {
		os.Exit(3) // the test has gone
	}
}

// quiet keeps the SDK's own log out of standard output.
type quiet struct{}

func (quiet) Debugf(f string, a ...any) { fmt.Fprintf(os.Stderr, "DEBUG "+f+"\n", a...) }
func (quiet) Warnf(f string, a ...any)  { fmt.Fprintf(os.Stderr, "WARN "+f+"\n", a...) }
func (quiet) Errorf(f string, a ...any) { fmt.Fprintf(os.Stderr, "ERROR "+f+"\n", a...) }

func main() {
	server.SetLoggerInterface(quiet{})
	healthy.Store(true)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var words []string
		if err := json.Unmarshal(in.Bytes(), &words); err != nil || len(words) == 0 {
			fmt.Fprintf(os.Stderr, "line %q: want a JSON array of words\n", in.Text())
			os.Exit(2)
		}
		answer := line{Reply: words[0], Type: -1}
		err := call(words[0], words[1:], &answer)
		if err != nil {
			answer.Error = err.Error()
			var sdk *common.GameLiftError
			if errors.As(err, &sdk) {
				answer.Type = int(sdk.ErrorType)
			}
		}
		say(answer)
	}
}

func call(name string, args []string, answer *line) error {
	arg := ""
	if len(args) > 0 {
		arg = args[0]
	}
	switch name {
	case "init":
		return server.InitSDK(server.ServerParameters{})
	case "ready": // port; "silent": no callback for the end
		port, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		return server.ProcessReady(parameters(port, len(args) > 1 && args[1] == "silent"))
	case "health":
		healthy.Store(arg == "true")
		return nil
	case "activate":
		return server.ActivateGameSession()
	case "accept":
		return server.AcceptPlayerSession(arg)
	case "remove":
		return server.RemovePlayerSession(arg)
	case "policy":
		policy := model.DenyAll
		if arg == "ACCEPT_ALL" {
			policy = model.AcceptAll
		}
		return server.UpdatePlayerSessionCreationPolicy(policy)
	case "players": // status, limit, token
		return players(args, answer)
	case "backfill": // ARN of the configuration, ticket, then team:player…
		return backfill(args, answer)
	case "stop-backfill": // ARN of the configuration, ticket
		req := request.NewStopMatchBackfill()
		req.GameSessionArn, _ = server.GetGameSessionID() // never fails
		req.MatchmakingConfigurationArn, req.TicketID = arg, args[1]
		return server.StopMatchBackfill(req)
	case "certificate":
		c, err := server.GetComputeCertificate()
		answer.Value = c.ComputeName + " " + c.CertificatePath
		return err
	case "credentials":
		req := request.NewGetFleetRoleCredentials()
		req.RoleArn = arg
		_, err := server.GetFleetRoleCredentials(req)
		return err
	case "termination":
		at, err := server.GetTerminationTime()
		answer.Value = strconv.FormatInt(at, 10)
		return err
	case "ending":
		return server.ProcessEnding()
	case "destroy":
		return server.Destroy()
	case "exit":
		os.Exit(0)
	}
	return fmt.Errorf("unknown call %q", name)
}

func parameters(port int, silent bool) server.ProcessParameters {
	p := server.ProcessParameters{
		OnStartGameSession:  func(s model.GameSession) { say(line{Event: "start", Session: &s}) },
		OnUpdateGameSession: func(u model.UpdateGameSession) { say(line{Event: "update", Update: &u}) },
		OnProcessTerminate:  func() { say(line{Event: "terminate"}) },
		OnHealthCheck:       healthy.Load,
		Port:                port,
		LogParameters:       server.LogParameters{LogPaths: []string{"/var/log/game"}},
	}
	if silent {
		p.OnProcessTerminate = nil
	}
	return p
}

func backfill(args []string, answer *line) error {
	game, _ := server.GetGameSessionID() // never fails
	req := request.NewStartMatchBackfill(game, args[0], nil)
	req.TicketID = args[1]
	for _, word := range args[2:] {
		team, id, _ := strings.Cut(word, ":")
		req.Players = append(req.Players, model.Player{PlayerID: id, Team: team})
	}
	started, err := server.StartMatchBackfill(req)
	answer.Value = started.TicketID
	return err
}

func players(args []string, answer *line) error {
	req := request.NewDescribePlayerSessions()
	req.GameSessionID, _ = server.GetGameSessionID() // never fails
	for i, word := range args {
		switch i {
		case 0:
			req.PlayerSessionStatusFilter = word
		case 1:
			limit, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			req.Limit = limit
		case 2:
			req.NextToken = word
		}
	}
	page, err := server.DescribePlayerSessions(req)
	answer.Players, answer.Value = page.PlayerSessions, page.NextToken
	return err
}
