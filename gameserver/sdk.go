package gameserver

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/result"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/server"
)

// SDK is a server SDK. The methods do what the functions of the same names in the official SDK do, and return
// errors that contain a *common.GameLiftError. Options.SDK replaces the official SDK: mustertest has one that allows
// many servers in one program.
type SDK interface {
	InitSDK(server.ServerParameters) error                                                                     // connects
	ProcessReady(server.ProcessParameters) error                                                               // sets the callbacks and the port
	ProcessEnding() error                                                                                      // reports the end
	Destroy() error                                                                                            // disconnects
	ActivateGameSession() error                                                                                // players may connect
	GetTerminationTime() (int64, error)                                                                        // in seconds since 1970 UTC
	UpdatePlayerSessionCreationPolicy(model.PlayerSessionCreationPolicy) error                                 // opens or closes the session
	AcceptPlayerSession(playerSessionID string) error                                                          // RESERVED becomes ACTIVE
	RemovePlayerSession(playerSessionID string) error                                                          // ACTIVE becomes COMPLETED
	DescribePlayerSessions(request.DescribePlayerSessionsRequest) (result.DescribePlayerSessionsResult, error) // one page
	StartMatchBackfill(request.StartMatchBackfillRequest) (result.StartMatchBackfillResult, error)             // requests players
	StopMatchBackfill(request.StopMatchBackfillRequest) error                                                  // cancels the request
	GetComputeCertificate() (result.GetComputeCertificateResult, error)                                        // the path of the certificate
}

// started belongs to the only Server of this program that uses the official SDK. That SDK keeps its state in package variables, which its
// Destroy does not reset: a second server process in one program would miss reconnections.
var started atomic.Bool

// official is the official SDK.
type official struct {
	options Options
	log     *slog.Logger
	beats   *heartbeats
}

// begin claims the SDK for one Server.
func (official) begin() bool { return started.CompareAndSwap(false, true) }

// release allows another attempt after a failed one.
func (official) release() { started.Store(false) }

// connect connects to the service, or returns why it could not.
func (x official) connect(p server.ServerParameters) error {
	log := &sdkLog{log: x.log}
	log.connecting.Store(true)
	defer log.connecting.Store(false)
	server.SetLoggerInterface(log)
	err := x.InitSDK(p)
	if reason := log.reason.Load(); err != nil && reason != nil {
		err = &ConnectError{URL: x.options.WebSocketURL, Reason: *reason, Err: err}
	}
	return err
}

func (x official) ProcessReady(p server.ProcessParameters) error {
	p.OnHealthCheck = x.beats.guard(p.OnHealthCheck)
	return server.ProcessReady(p)
}

func (x official) Destroy() error { return x.beats.without(server.Destroy) }

func (official) InitSDK(p server.ServerParameters) error { return server.InitSDK(p) }
func (official) ProcessEnding() error                    { return server.ProcessEnding() }
func (official) ActivateGameSession() error              { return server.ActivateGameSession() }
func (official) GetTerminationTime() (int64, error)      { return server.GetTerminationTime() }
func (official) AcceptPlayerSession(id string) error     { return server.AcceptPlayerSession(id) }
func (official) RemovePlayerSession(id string) error     { return server.RemovePlayerSession(id) }

func (official) UpdatePlayerSessionCreationPolicy(p model.PlayerSessionCreationPolicy) error {
	return server.UpdatePlayerSessionCreationPolicy(p)
}

func (official) DescribePlayerSessions(r request.DescribePlayerSessionsRequest) (result.DescribePlayerSessionsResult, error) {
	return server.DescribePlayerSessions(r)
}

func (official) StartMatchBackfill(r request.StartMatchBackfillRequest) (result.StartMatchBackfillResult, error) {
	return server.StartMatchBackfill(r)
}

func (official) StopMatchBackfill(r request.StopMatchBackfillRequest) error {
	return server.StopMatchBackfill(r)
}

func (official) GetComputeCertificate() (result.GetComputeCertificateResult, error) {
	return server.GetComputeCertificate()
}

// errSDKInUse suggests an alternative.
var errSDKInUse = errors.New("the official SDK allows one server process in a program; tests use Fleet.ServerOptions of package mustertest")
