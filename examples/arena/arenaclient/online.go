package arenaclient

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/gameclient"
)

// seatsInNew is the number of seats of a game session that this client creates.
const seatsInNew = 4

// online brings a player into a game through the service. One of Session, Friend, Queue and Fleet chooses the game.
type online struct {
	session, friend, queue, fleet string
	location, level               string
	player                        string // the player's id at the service
	name                          string // the name in the game

	client *gameclient.Client
	link   *link
}

func (o *online) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.session, "session", "", "join the game session with this `ARN`")
	flags.StringVar(&o.friend, "friend", "", "join the game session of this `player`")
	flags.StringVar(&o.queue, "queue", "", "create a game session wherever this `queue` finds room, and join it")
	flags.StringVar(&o.fleet, "fleet", "", "join a game session on this `fleet`, or create one")
	flags.StringVar(&o.location, "location", "", "`location` of a new game session on the fleet")
	flags.StringVar(&o.level, "level", "", "`properties` of a new game session, such as size=16x8,goal=5,rounds=3")
	flags.StringVar(&o.player, "player", "", "`id` of this player (default: the name)")
}

func (o *online) wanted() bool { return o.session+o.friend+o.queue+o.fleet != "" }

// open makes the client. Region, endpoint and credentials come from the environment and the AWS profile files.
func (o *online) open(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w", err)
	}
	o.link = &link{name: o.name}
	o.client = gameclient.New(cfg, o.link)
	o.player = cmp.Or(o.player, o.name)
	return nil
}

// join brings this player into a game. The next join returns to the same game.
func (o *online) join(ctx context.Context) (*arena.Client, error) {
	var seat gameclient.Seat
	var err error
	switch {
	case o.session != "":
		seat, err = o.client.JoinSession(ctx, gameclient.JoinSessionRequest{SessionID: o.session, PlayerID: o.player})
	case o.friend != "":
		seat, err = o.client.JoinFriend(ctx, gameclient.JoinFriendRequest{FriendID: o.friend, PlayerID: o.player})
	case o.queue != "":
		seat, err = o.place(ctx)
	default:
		seat, err = o.findOrCreate(ctx)
	}
	if failed, ok := errors.AsType[*gameclient.JoinError](err); ok && failed.Stage == gameclient.StageConnect {
		seat, err = o.again(ctx, failed)
	}
	if err != nil {
		return nil, err
	}
	o.session = seat.SessionID
	return o.link.playing, nil
}

// again tries once more with the reserved seat, unless the game server has refused it permanently.
func (o *online) again(ctx context.Context, failed *gameclient.JoinError) (gameclient.Seat, error) {
	refused, ok := errors.AsType[*arena.RefusedError](failed)
	if ok && !refused.Retry {
		return gameclient.Seat{}, failed
	}
	if err := o.client.Connect(ctx, failed.Seat); err != nil {
		_, released := o.client.Release(context.WithoutCancel(ctx), failed.Seat.PlayerSessionID)
		return gameclient.Seat{}, errors.Join(err, released)
	}
	return failed.Seat, nil
}

// leave disconnects; the game server reports that to the service.
func (o *online) leave(ctx context.Context) error { return o.client.LeaveSession(ctx) }

func (o *online) findOrCreate(ctx context.Context) (gameclient.Seat, error) {
	search := gameclient.SearchSessionsRequest{FleetID: o.fleet, Filter: "hasAvailablePlayerSessions=true", Sort: "creationTimeMillis ASC"}
	for s, err := range o.client.Sessions(ctx, search) {
		if err != nil {
			return gameclient.Seat{}, err
		}
		seat, err := o.client.JoinSession(ctx, gameclient.JoinSessionRequest{SessionID: s.ID, PlayerID: o.player})
		if errors.Is(err, gameclient.ErrFull) || errors.Is(err, gameclient.ErrWrongStatus) {
			continue // another client was faster
		}
		return seat, err
	}
	properties, err := o.properties()
	if err != nil {
		return gameclient.Seat{}, err
	}
	created, err := o.client.CreateSession(ctx, gameclient.CreateSessionRequest{
		FleetID: o.fleet, Location: o.location, Name: o.name + "'s game", MaxPlayers: seatsInNew, Properties: properties,
	})
	if err != nil {
		return gameclient.Seat{}, err
	}
	if _, err := o.client.AwaitActive(ctx, created.ID); err != nil {
		return gameclient.Seat{}, err
	}
	return o.client.JoinSession(ctx, gameclient.JoinSessionRequest{SessionID: created.ID, PlayerID: o.player})
}

func (o *online) place(ctx context.Context) (gameclient.Seat, error) {
	properties, err := o.properties()
	if err != nil {
		return gameclient.Seat{}, err
	}
	placed, err := o.client.CreateSessionOnQueue(ctx, gameclient.CreateSessionOnQueueRequest{
		Queue: o.queue, Name: o.name + "'s game", MaxPlayers: seatsInNew, Properties: properties,
		Players: []gameclient.PlacedPlayer{{ID: o.player}},
	})
	if err != nil {
		return gameclient.Seat{}, err
	}
	if len(placed.Seats) != 1 {
		return gameclient.Seat{}, fmt.Errorf("placement %s has %d seats, want 1", placed.ID, len(placed.Seats))
	}
	return placed.Seats[0], o.client.Connect(ctx, placed.Seats[0])
}

func (o *online) properties() (map[string]string, error) {
	properties := map[string]string{}
	for pair := range strings.SplitSeq(o.level, ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("level: %q: want key=value", pair)
		}
		properties[key] = value
	}
	return properties, nil
}

// link is the game's network layer for gameclient.
type link struct {
	name    string
	playing *arena.Client
}

func (l *link) Connect(ctx context.Context, seat gameclient.Seat) error {
	client, err := arena.Dial(ctx, seat.Address(), seat.PlayerSessionID, l.name)
	l.playing = client
	return err
}

func (l *link) Disconnect(context.Context) error { return l.playing.Leave() }
