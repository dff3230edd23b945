// Command backend is a small studio backend: it makes game sessions for parties of players, over HTTP. Game clients talk
// only to the backend, and only the backend has credentials for the service.
//
//	backend -listen 127.0.0.1:9000 -fleet FLEET -location custom-home
//	backend -listen 127.0.0.1:9000 -fleet FLEET -queue QUEUE
//
//	POST /games   {"players": ["ann", "bob"], "level": {"goal": "5"}}    a new game, with a seat for each of them
//	GET  /games                                                          games with free seats
//	POST /join    {"player": "cyd", "game": "arn:…"}                     a seat in a game
//	POST /join    {"player": "cyd", "friend": "ann"}                     a seat where a friend plays
//
// A seat is what a game client needs to connect: {"player", "address", "playerSession", "game"}. Region, endpoint and
// credentials are those of the AWS SDK, from the environment or a profile.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/musterhq/muster/gameclient"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "backend:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var b backend
	flags := flag.NewFlagSet("backend", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:9000", "`address` to answer on")
	flags.StringVar(&b.fleet, "fleet", "", "`fleet` on which games run")
	flags.StringVar(&b.location, "location", "", "`location` of new games on the fleet")
	flags.StringVar(&b.queue, "queue", "", "`queue` that finds room for new games, instead of a location")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w", err)
	}
	b.client = gameclient.New(cfg, nil) // it makes no connections for players
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	slog.Info("listening", "address", listener.Addr().String())
	server := &http.Server{Handler: b.routes(), ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

const (
	seatsMax     = 4
	createWithin = 30 * time.Second // a game client does not wait longer for a new game
	bodyMax      = 64 << 10
)

type backend struct {
	client                 gameclient.Backend
	fleet, location, queue string
}

type seat struct {
	Player        string `json:"player"`
	Address       string `json:"address"`
	PlayerSession string `json:"playerSession"`
	Game          string `json:"game"`
}

type game struct {
	ID      string `json:"id"`
	Players int    `json:"players"`
	Max     int    `json:"playersMax"`
}

func (b *backend) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /games", serve(b.create))
	mux.HandleFunc("POST /join", serve(b.join))
	mux.HandleFunc("GET /games", serve(b.list))
	return mux
}

type createRequest struct {
	Players []string          `json:"players"`
	Level   map[string]string `json:"level"`
}

// create makes a game with a seat for each player.
func (b *backend) create(ctx context.Context, r createRequest) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, createWithin)
	defer cancel()
	if b.queue != "" {
		return b.place(ctx, r)
	}
	s, err := b.client.CreateSession(ctx, gameclient.CreateSessionRequest{
		FleetID: b.fleet, Location: b.location, MaxPlayers: seatsMax, Properties: r.Level,
	})
	if err != nil {
		return nil, err
	}
	if _, err := b.client.AwaitActive(ctx, s.ID); err != nil {
		return nil, err
	}
	seats := []seat{}
	for _, player := range r.Players {
		taken, err := b.client.Reserve(ctx, gameclient.JoinSessionRequest{SessionID: s.ID, PlayerID: player})
		if err != nil {
			b.giveBack(seats) // a party gets all of its seats or none
			return nil, err
		}
		seats = append(seats, seatFor(taken))
	}
	return seats, nil
}

func (b *backend) place(ctx context.Context, r createRequest) (any, error) {
	wanted := gameclient.CreateSessionOnQueueRequest{Queue: b.queue, MaxPlayers: seatsMax, Properties: r.Level}
	for _, player := range r.Players {
		wanted.Players = append(wanted.Players, gameclient.PlacedPlayer{ID: player})
	}
	placed, err := b.client.CreateSessionOnQueue(ctx, wanted)
	if waiting, ok := errors.AsType[*gameclient.PlacementError](err); ok && waiting.Status == gameclient.PlacementPending {
		// The game client has closed its request: no player would join the session.
		err = errors.Join(err, b.client.StopPlacement(context.WithoutCancel(ctx), waiting.PlacementID))
	}
	if err != nil {
		return nil, err
	}
	seats := []seat{}
	for _, s := range placed.Seats {
		seats = append(seats, seatFor(s))
	}
	return seats, nil
}

func (b *backend) giveBack(seats []seat) {
	ctx, cancel := context.WithTimeout(context.Background(), createWithin)
	defer cancel()
	for _, s := range seats {
		if _, err := b.client.Release(ctx, s.PlayerSession); err != nil {
			slog.Warn("give a seat back", "player_session", s.PlayerSession, "error", err) // it times out
		}
	}
}

type joinRequest struct {
	Player string `json:"player"`
	Game   string `json:"game"`
	Friend string `json:"friend"`
}

// join takes a seat in an existing game.
func (b *backend) join(ctx context.Context, r joinRequest) (any, error) {
	if r.Friend != "" {
		where, err := b.client.FindPlayer(ctx, r.Friend)
		if err != nil {
			return nil, err
		}
		r.Game = where.SessionID
	}
	taken, err := b.client.Reserve(ctx, gameclient.JoinSessionRequest{SessionID: r.Game, PlayerID: r.Player})
	if err != nil {
		return nil, err
	}
	return seatFor(taken), nil
}

func (b *backend) list(ctx context.Context, _ struct{}) (any, error) {
	games := []game{}
	for s, err := range b.client.Sessions(ctx, gameclient.SearchSessionsRequest{FleetID: b.fleet, Filter: "hasAvailablePlayerSessions=true"}) {
		if err != nil {
			return nil, err
		}
		games = append(games, game{s.ID, s.Players, s.MaxPlayers})
	}
	return games, nil
}

func seatFor(s gameclient.Seat) seat {
	return seat{s.PlayerID, s.Address(), s.PlayerSessionID, s.SessionID}
}

// serve makes a handler from a function that maps one JSON value to another.
func serve[Q any](do func(context.Context, Q) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMax)).Decode(&q); err != nil {
				answer(w, http.StatusBadRequest, map[string]string{"error": "the body is not the JSON that is wanted: " + err.Error()})
				return
			}
		}
		out, err := do(r.Context(), q)
		if err != nil {
			slog.Warn("request failed", "path", r.URL.Path, "error", err)
			answer(w, status(err), map[string]string{"error": err.Error()})
			return
		}
		answer(w, http.StatusOK, out)
	}
}

// status returns the HTTP status for an error.
func status(err error) int {
	_, invalid := errors.AsType[*gameclient.InvalidRequestError](err)
	switch {
	case invalid, errors.Is(err, gameclient.ErrRefused):
		return http.StatusBadRequest
	case errors.Is(err, gameclient.ErrNotFound), errors.Is(err, gameclient.ErrNotPlaying):
		return http.StatusNotFound
	case errors.Is(err, gameclient.ErrFull), errors.Is(err, gameclient.ErrWrongStatus):
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails if the client has gone
}
