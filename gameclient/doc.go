// Package gameclient lets game clients and backends create, find, join and leave game sessions, request matches, and join friends.
//
// It works with Muster and, unchanged, with Amazon GameLift Servers. It calls the AWS SDK for Go and offers a game's own operations
// instead of the API's. Package gameserver is its counterpart in the dedicated server.
//
// # A client
//
// [New] makes a [Client] from the AWS SDK's configuration and the game's own network layer, the [Connector]:
//
//	cfg, err := config.LoadDefaultConfig(ctx) // region, endpoint and credentials: environment and profile files
//	client := gameclient.New(cfg, connector)
//
// AWS_ENDPOINT_URL_GAMELIFT, or the endpoint of the profile, selects the service: a Muster on the developer's machine, the studio's
// Muster, or the cloud. Nothing else changes. A released game contains credentials of Muster's role "client", or it calls the studio's
// backend, which uses this package too, with a nil connector.
//
// # Search, then join
//
// Most games join the first session that has a free seat, or create one.
//
//	for s, err := range client.Sessions(ctx, gameclient.SearchSessionsRequest{FleetID: fleet, Filter: "hasAvailablePlayerSessions=true"}) {
//		…
//		seat, err := client.JoinSession(ctx, gameclient.JoinSessionRequest{SessionID: s.ID, PlayerID: player})
//	}
//
// [Client.JoinOrCreate] does both in one call. [Client.ReserveOrCreate] does the same for a backend.
//
// A join has two steps: the service reserves a seat, and the connector connects to the game server with it. JoinSession succeeds
// if and only if both steps do. If the second step fails, the error is a [JoinError] with the seat, which stays reserved for 60 s by
// default. [Client.Connect] tries the second step again, and [Client.Release] frees the seat. LeaveSession disconnects, and the game
// server reports that to the service.
//
// # Creating
//
// CreateSession creates a session on the given fleet, and AwaitActive waits until the game server has loaded it.
// CreateSessionOnQueue lets a queue choose the fleet. It returns when the session is ACTIVE, with a reserved seat for each player of the
// request.
//
// # Matchmaking
//
// StartMatchmaking requests a match and returns a [Ticket]. AcceptMatch answers a match that was found, and StopMatchmaking cancels the
// request. A [Tracker] polls tickets for the client: it reports when players have to accept a match, and joins the session of the match.
//
// # Without waiting
//
// The calls that a game loop needs have an asynchronous form, named …Async, that returns a [Future] at once. A Future completes
// exactly once. It can be awaited, polled from a game loop, or observed by a callback:
//
//	join := client.JoinSessionAsync(ctx, request)
//	…
//	if seat, completed, err := join.Poll(); completed { … } // in each frame
//
// [Start] makes a Future of any function, such as several calls in a row.
//
// # Player flow
//
// With a Muster that has player flow (muster serve --player-flow), a game needs no credentials and no AWS configuration: the
// player logs in, and the service keeps the only record of the player's party, search and game. [Login] returns a [Player]:
//
//	player, err := gameclient.Login(ctx, gameclient.PlayerOptions{
//		Endpoint: "https://play.example.com", Provider: gameclient.ProviderOIDC, Token: token,
//	})
//	party, err := player.CreateParty(ctx, gameclient.CreatePartyRequest{})
//	…                                                        // friends come with JoinPartyByCode(ctx, party.InviteCode)
//	search, err := player.EnterMatchmaking(ctx, "ranked")
//	e, err := player.Await(ctx, gameclient.OnHostConnectionDetailsReceived)
//	…                                                        // connect to e.Host.Address(), show e.Host.PlayerSessionID
//
// The service reports everything that happens to the player as events. Each event arrives once, in order and without a gap, even if
// the connection is lost meanwhile. [Player.Events] iterates over them, [Player.Next] waits for one, and [Player.Poll] returns one
// without waiting, for a game loop. The Player reconnects for as long as it takes; where no WebSocket gets through, it uses long polls.
// The game must take the events: when 1,000 of them wait, the Player replaces them with one OnSync.
//
// After a crash the game logs in again and checks AtLogin:
//
//	if game := player.AtLogin.Game; game != nil { // there is a game to return to
//		details, err := player.Reconnect(ctx) // or player.DeclineReconnect(ctx), if game.Membership.CanDecline
//	}
//
// The Player waits 30 s for the answer to a call, and sends the call up to four times in all; the service carries it out once. A
// refusal is a [FlowError], which says what to do next. A call with [IfRev] is carried out only if the player's record has not
// changed since the game read it. The Player refreshes its login while the program runs.
//
// # Interfaces
//
// A Client implements [Joiner] and [Backend], which consists of [Creator], [Finder], [Reserver] and [Matchmaker]. A program that declares
// what it needs as one of these interfaces can replace the Client in its tests.
//
// # Errors
//
// An [InvalidRequestError] names a field with an impossible value; nothing was sent. Any other failed call is an [Error] with the name of the
// call. errors.Is distinguishes its kinds (ErrFull, ErrNoCapacity, ErrNotFound and so on), and errors.As finds the API's own
// exception. Cancelling a context ends the wait but undoes nothing: a placement continues, and a seat stays reserved.
//
// # Limits
//
// The service checks the lengths that the GameLift API documents: player ids have 1 to 1,024 characters, player data up to 2,048, names of
// game sessions up to 1,024, their data up to 262,144. A game session has up to 16 properties, with keys up to 32 and values up to 96
// characters. A request beyond them fails with ErrRefused.
package gameclient
