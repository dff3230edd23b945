// Package gameclient is a player's way to game sessions: create one, search, join, leave, find a match, join a friend.
//
// It works with Muster and, unchanged, with Amazon GameLift Servers: below it is the AWS SDK for Go, and this package
// makes of its requests what a game wants to say. Package gameserver is its counterpart in the dedicated server.
//
// # A client
//
// A [Client] is made from the AWS SDK's configuration and the game's own network layer, the [Connector]:
//
//	cfg, err := config.LoadDefaultConfig(ctx) // region, endpoint and credentials: environment and profile files
//	client := gameclient.New(cfg, connector)
//
// To play against another service, change AWS_ENDPOINT_URL_GAMELIFT (or the endpoint of the profile) and nothing else:
// a Muster on the developer's machine, a Muster of the studio, the cloud. A game that ships holds credentials of
// Muster's role "client", or asks the studio's backend, which uses this package too, with a nil connector.
//
// # Search, then join
//
// The way most games go: take the first session that has room, or make one.
//
//	for s, err := range client.Sessions(ctx, gameclient.SearchSessionsRequest{FleetID: fleet, Filter: "hasAvailablePlayerSessions=true"}) {
//		…
//		seat, err := client.JoinSession(ctx, gameclient.JoinSessionRequest{SessionID: s.ID, PlayerID: player})
//	}
//
// [Client.JoinOrCreate] is both in one call, and [Client.ReserveOrCreate] the same for a backend.
//
// A join is two things: a seat is reserved with the service, and the connector shows it to the game server. JoinSession
// succeeds if and only if both did. When the second fails, the error is a [JoinError] with the seat, which stays
// reserved for a while: [Client.Connect] tries again with it, [Client.Release] gives it back. LeaveSession disconnects;
// the game server tells the service.
//
// # Creating
//
// CreateSession makes a session on a fleet that the caller names, AwaitActive waits until it has loaded.
// CreateSessionOnQueue leaves the choice to a queue, and returns when the session is ACTIVE, with a seat for each of the
// players it was made for.
//
// # Matchmaking
//
// StartMatchmaking sends a wish for a match and returns a [Ticket]; AcceptMatch and StopMatchmaking answer and withdraw
// it. A [Tracker] looks after tickets from the client: it tells when a match has to be accepted, and joins its session.
//
// # Without waiting
//
// Every call has an asynchronous form, named …Async, that returns a [Future] at once. It completes exactly once and can
// be awaited, polled from a game loop, or observed by a callback:
//
//	join := client.JoinSessionAsync(ctx, request)
//	…
//	if seat, completed, err := join.Poll(); completed { … } // in each frame
//
// [Start] makes a Future of any work, such as several calls in a row.
//
// # A player's flow
//
// With a Muster that has player flow (muster serve --player-flow) a game needs no credentials and no AWS configuration: the
// player logs in, and the service keeps the one record of party, search and game. [Login] gives a [Player]:
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
// What happens meanwhile comes as events, each once, in order and without a gap, whatever happens to the network:
// [Player.Events] is a loop over them, [Player.Next] waits for one, [Player.Poll] looks for one in each frame. A lost connection
// is sought again for as long as it takes; where no WebSocket gets through, events come by long poll. Somebody must
// take them, or at last an OnSync comes in place of those that were too many.
//
// After a crash the game logs in again and looks at AtLogin:
//
//	if game := player.AtLogin.Game; game != nil { // there is a game to return to
//		details, err := player.Reconnect(ctx) // or player.DeclineReconnect(ctx), if game.Membership.CanDecline
//	}
//
// A call that gets no answer is made again, and is carried out once. What was refused is a [FlowError], which says what to do
// about it. With [IfRev] a call is carried out only if everything still is as the player has seen it. The login is refreshed by
// itself while the program runs.
//
// # Interfaces
//
// A Client is a [Backend], which is made of [Creator], [Finder], [Reserver] and [Matchmaker], and a [Joiner]. A program that declares what it
// needs as one of these can replace it in its tests.
//
// # Errors
//
// A request that cannot be meant is an [InvalidRequestError] that names the field; nothing was sent. What the service
// refused is an [Error] with the name of the call: errors.Is tells the kinds apart (ErrFull, ErrNoCapacity, ErrNotFound and so on), errors.As
// finds the API's own exception. Cancelling a context ends the waiting and never undoes: a placement goes on, a seat
// stays reserved.
package gameclient
