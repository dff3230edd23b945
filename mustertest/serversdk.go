package mustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/common"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/message"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/result"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/server"

	"github.com/musterhq/muster/gameserver"
	"github.com/musterhq/muster/internal/linkclient"
)

// ServerOptions returns options for one gameserver.Server in the test's process. Any number of such Servers may run, also in
// parallel tests, because they do not use the official SDK, which allows one server process in a program.
func (f *Fleet) ServerOptions() gameserver.Options {
	f.srv.t.Helper()
	p := f.ServerParameters()
	sdk := &serverSDK{stop: make(chan struct{})}
	f.srv.t.Cleanup(func() { _ = sdk.Destroy() }) // the test may not have ended its server
	o := p.GameServerOptions()
	o.Port, o.SDK = 7000+f.servers, sdk
	return o
}

// GameServerOptions converts the parameters to options for a gameserver.Server with the official SDK, in another process or as the only one in
// this process. Port is not set.
func (p ServerParameters) GameServerOptions() gameserver.Options {
	return gameserver.Options{
		WebSocketURL: p.WebSocketURL, AuthToken: p.AuthToken, FleetID: p.FleetID, HostID: p.HostID, ProcessID: p.ProcessID,
	}
}

const (
	sdkTimeout   = 20 * time.Second // for one answer, as in the official SDK
	sdkHeartbeat = time.Minute
)

// serverSDK does what the official server SDK does for one server process, without package variables.
type serverSDK struct {
	stop chan struct{} // closed by Destroy

	mu          sync.Mutex
	options     linkclient.Options
	client      *linkclient.Client
	told        server.ProcessParameters // by ProcessReady
	ready       bool
	over        bool
	hosted      string // game session
	terminateAt int64  // epoch seconds; 0: not told
}

func (x *serverSDK) InitSDK(p server.ServerParameters) error {
	o := linkclient.Options{URL: p.WebSocketURL, Process: p.ProcessID, Compute: p.HostID, Fleet: p.FleetID, Token: p.AuthToken, OnPush: x.push}
	ctx, cancel := context.WithTimeout(context.Background(), sdkTimeout)
	defer cancel()
	client, err := linkclient.Dial(ctx, o)
	if err != nil {
		refused := &gameserver.ConnectError{URL: p.WebSocketURL, Err: err}
		if answer, ok := errors.AsType[*linkclient.RefusedError](err); ok {
			refused.Status, refused.Reason = answer.Status, answer.Body
		}
		return refused
	}
	x.mu.Lock()
	x.options, x.client = o, client
	x.mu.Unlock()
	go x.keep(client)
	return nil
}

// keep reconnects when the connection is lost.
func (x *serverSDK) keep(client *linkclient.Client) {
	for {
		select {
		case <-client.Closed():
		case <-x.stop:
			return
		}
		x.mu.Lock()
		lost, options := x.client == client, x.options
		client = x.client
		x.mu.Unlock()
		for lost {
			next, err := linkclient.Dial(context.Background(), options)
			if err == nil {
				x.take(next)
				client = next
				break
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-x.stop:
				return
			}
		}
	}
}

// take replaces the current connection.
func (x *serverSDK) take(next *linkclient.Client) {
	x.mu.Lock()
	before := x.client
	if x.over {
		before = next
	} else {
		x.client = next
	}
	x.mu.Unlock()
	before.Drop()
}

// push runs on the reading goroutine of a connection.
func (x *serverSDK) push(_ *linkclient.Client, p linkclient.Push) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	switch message.MessageAction(p.Action) {
	case message.CreateGameSession:
		var m message.CreateGameSessionMessage
		if json.Unmarshal(p.Raw, &m) == nil && x.ready {
			s := *message.NewGameSession(&m)
			s.FleetID, x.hosted = x.options.Fleet, s.GameSessionID
			go x.told.OnStartGameSession(s)
		}
	case message.UpdateGameSession:
		var m message.UpdateGameSessionMessage
		if json.Unmarshal(p.Raw, &m) == nil && x.ready {
			go x.told.OnUpdateGameSession(m.UpdateGameSession)
		}
	case message.TerminateProcess:
		at, err := p.TerminationTime()
		if err == nil && x.ready {
			x.terminateAt = at / 1000
			go x.told.OnProcessTerminate()
		}
	case message.RefreshConnection:
		if to, err := p.Refresh(); err == nil {
			x.options.URL, x.options.Token = to.RefreshConnectionEndpoint, to.AuthToken
			options := x.options
			go func() {
				if next, err := linkclient.Dial(context.Background(), options); err == nil {
					x.take(next) // otherwise the connection stays, and the service asks again
				}
			}()
		}
	}
}

// do sends a request of the official SDK's and reads the answer.
func (x *serverSDK) do(r interface{ GetMessage() message.Message }, answer any) error {
	x.mu.Lock()
	client := x.client
	x.mu.Unlock()
	if client == nil {
		return common.NewGameLiftError(common.GameLiftServerNotInitialized, "", "")
	}
	text, err := json.Marshal(r)
	members := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		return fmt.Errorf("mustertest: %T: %w", r, err)
	}
	delete(members, "Action")
	delete(members, "RequestId")
	text, _ = json.Marshal(members) // the members come from JSON
	ctx, cancel := context.WithTimeout(context.Background(), sdkTimeout)
	defer cancel()
	sent := r.GetMessage()
	got, err := client.DoWithID(ctx, sent.RequestID, string(sent.Action), strings.TrimSuffix(strings.TrimPrefix(string(text), "{"), "}"))
	if refused, ok := errors.AsType[*linkclient.StatusError](err); ok {
		return common.NewGameLiftErrorFromStatusCode(refused.Status, refused.Message)
	}
	if err != nil {
		return common.NewGameLiftError(common.ServiceCallFailed, "", err.Error())
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got.Raw, answer)
}

func (x *serverSDK) ProcessReady(p server.ProcessParameters) error {
	x.mu.Lock()
	x.told, x.ready = p, true // a game session may arrive before the answer is read
	x.mu.Unlock()
	r := request.NewActivateServerProcess(common.SdkVersion, common.SdkLanguage, p.Port)
	r.LogPaths = p.LogParameters.LogPaths
	if err := x.do(r, nil); err != nil {
		return err
	}
	go x.beat()
	return nil
}

// beat reports the health at once and then every minute.
func (x *serverSDK) beat() {
	every := time.NewTicker(sdkHeartbeat)
	defer every.Stop()
	for {
		_ = x.do(request.NewHeartbeatServerProcess(x.told.OnHealthCheck()), nil) // a failed heartbeat counts as a missing one
		select {
		case <-every.C:
		case <-x.stop:
			return
		}
	}
}

func (x *serverSDK) ProcessEnding() error { return x.do(request.NewTerminateServerProcess(), nil) }

func (x *serverSDK) Destroy() error {
	x.mu.Lock()
	client, first := x.client, !x.over
	x.over, x.ready = true, false
	x.mu.Unlock()
	if first {
		close(x.stop)
	}
	if client != nil {
		client.Drop()
	}
	return nil
}

func (x *serverSDK) GetTerminationTime() (int64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.terminateAt == 0 {
		return 0, common.NewGameLiftError(common.TerminationTimeNotSet, "", "")
	}
	return x.terminateAt, nil
}

func (x *serverSDK) gameSession() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.hosted
}

func (x *serverSDK) ActivateGameSession() error {
	return x.do(request.NewActivateGameSession(x.gameSession()), nil)
}

func (x *serverSDK) UpdatePlayerSessionCreationPolicy(p model.PlayerSessionCreationPolicy) error {
	return x.do(request.NewUpdatePlayerSessionCreationPolicy(x.gameSession(), p), nil)
}

func (x *serverSDK) AcceptPlayerSession(id string) error {
	return x.do(request.NewAcceptPlayerSession(x.gameSession(), id), nil)
}

func (x *serverSDK) RemovePlayerSession(id string) error {
	return x.do(request.NewRemovePlayerSession(x.gameSession(), id), nil)
}

func (x *serverSDK) DescribePlayerSessions(r request.DescribePlayerSessionsRequest) (answer result.DescribePlayerSessionsResult, err error) {
	err = x.do(r, &answer)
	return answer, err
}

func (x *serverSDK) StartMatchBackfill(r request.StartMatchBackfillRequest) (answer result.StartMatchBackfillResult, err error) {
	err = x.do(r, &answer)
	return answer, err
}

func (x *serverSDK) StopMatchBackfill(r request.StopMatchBackfillRequest) error { return x.do(r, nil) }

func (x *serverSDK) GetComputeCertificate() (answer result.GetComputeCertificateResult, err error) {
	err = x.do(request.NewGetComputeCertificate(), &answer)
	return answer, err
}

var _ gameserver.SDK = (*serverSDK)(nil)
