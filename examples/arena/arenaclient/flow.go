package arenaclient

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/gameclient"
)

// goodbye is how long a player who leaves waits for the answer of the service.
const goodbye = 15 * time.Second

// flow brings a player into a game by player flow: with friends, through a search, or back after a crash.
type flow struct {
	endpoint, ticket string
	code, queue      string
	party            int
	name             string
	out              io.Writer

	player    *gameclient.Player
	inParty   string // id
	searching bool
}

func (f *flow) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&f.endpoint, "flow", "", "`URL` of a service with player flow: log in there, and return to the game that is on, or search for one")
	flags.StringVar(&f.ticket, "login-ticket", "", "`ticket` that a backend has issued (default: log in as -name with the development provider)")
	flags.StringVar(&f.code, "code", "", "with -flow: join the party with this invite `code`")
	flags.StringVar(&f.queue, "match", "", "with -flow: lead a party and search with this matchmaking `configuration`")
	flags.IntVar(&f.party, "party", 1, "with -match: wait until the party has so many `members`, all ready")
}

func (f *flow) wanted() bool { return f.endpoint != "" }

// join logs in and brings this player into the running game, or into a new one.
func (f *flow) join(ctx context.Context) (*arena.Client, error) {
	login := gameclient.PlayerOptions{Endpoint: f.endpoint, Provider: gameclient.ProviderDev, Token: gameclient.DevToken(f.name), DeviceLabel: "terminal"}
	if f.ticket != "" {
		login.Provider, login.Token = gameclient.ProviderBackend, f.ticket
	}
	var err error
	if f.player, err = gameclient.Login(ctx, login); err != nil {
		return nil, err
	}
	if game := f.player.AtLogin.Game; game != nil {
		fmt.Fprintln(f.out, "returning to", game.ID)
		details, err := f.player.Reconnect(ctx)
		if err != nil {
			return nil, err
		}
		return arena.Dial(ctx, details.Address(), details.PlayerSessionID, f.name)
	}
	party, err := f.gather(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.wish(ctx, party); err != nil {
		return nil, err
	}
	for e, err := range f.player.Events(ctx) {
		if err != nil {
			return nil, err
		}
		details, err := f.see(ctx, e)
		if err != nil {
			return nil, err
		}
		if details != nil {
			return arena.Dial(ctx, details.Address(), details.PlayerSessionID, f.name)
		}
	}
	return nil, ctx.Err()
}

// gather creates a party, or joins that of a friend.
func (f *flow) gather(ctx context.Context) (party *gameclient.Party, err error) {
	switch {
	case f.code != "":
		party, err = f.player.JoinPartyByCode(ctx, f.code)
	case f.queue != "":
		party, err = f.player.CreateParty(ctx, gameclient.CreatePartyRequest{})
	default:
		return nil, errors.New("there is no game to return to: want -match or -code")
	}
	if err != nil {
		return nil, err
	}
	f.inParty = party.ID
	if f.queue != "" {
		fmt.Fprintln(f.out, "party", party.InviteCode)
	}
	return f.player.SetReady(ctx, true)
}

// wish starts the search once the party is complete.
func (f *flow) wish(ctx context.Context, party *gameclient.Party) error {
	if f.queue == "" || f.searching || party == nil || len(party.Members) < f.party {
		return nil
	}
	for _, m := range party.Members {
		if !m.Ready || !m.Online {
			return nil
		}
	}
	_, err := f.player.EnterMatchmaking(ctx, f.queue)
	f.searching = err == nil
	return err
}

// see handles one event, and returns the connection details when they arrive.
func (f *flow) see(ctx context.Context, e gameclient.Event) (*gameclient.HostDetails, error) {
	if e.PartyID != "" && e.PartyID != f.inParty {
		return nil, nil // the event is about an earlier party
	}
	switch e.Type {
	case gameclient.OnPartyChanged:
		return nil, f.wish(ctx, e.Party)
	case gameclient.OnPartyMemberPresence:
		party, err := f.player.Party(ctx)
		if err != nil {
			return nil, err
		}
		return nil, f.wish(ctx, party)
	case gameclient.OnEnteredMatchmaking:
		fmt.Fprintln(f.out, "searching in", e.Search.Queue)
	case gameclient.OnMatchFound:
		fmt.Fprintln(f.out, "match found")
		return nil, f.player.AnswerMatch(ctx, e.SearchID, true)
	case gameclient.OnAddedToGame:
		fmt.Fprintln(f.out, "in game", e.GameInstanceID)
	case gameclient.OnHostConnectionDetailsReceived:
		return e.Host, nil
	case gameclient.OnMatchmakingFailed, gameclient.OnFailedToAllocateGameInstance, gameclient.OnRemovedFromGame, gameclient.OnRemovedFromParty:
		return nil, fmt.Errorf("no game: %s: %s", e.Type, e.Reason)
	}
	return nil, nil
}

// watch handles events during the game. It ends when another device logs in as this player.
func (f *flow) watch(ctx context.Context, lost context.CancelCauseFunc) {
	for e, err := range f.player.Events(ctx) {
		switch {
		case errors.Is(err, gameclient.ErrReplaced):
			lost(err)
		case err == nil && e.Type == gameclient.OnRemovedFromGame && e.Reason != "LEFT": // this client knows that
			fmt.Fprintln(f.out, "removed from the game:", e.Reason)
		}
	}
}

// leave leaves the game for good, and logs out.
func (f *flow) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	err := f.player.LeaveGame(ctx)
	if errors.Is(err, gameclient.ErrWrongStatus) {
		err = nil // it has ended
	}
	return errors.Join(err, f.player.Logout(ctx))
}
