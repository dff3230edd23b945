// Package gameserver turns a Go program into a dedicated game server that a game session service can use.
//
// It works with Muster and, unchanged, with Amazon GameLift Servers: below it is the official server SDK for Go,
// version 5, and this package only makes it comfortable. A game sees contexts, errors it can tell apart, one struct
// of options and a few callbacks, and cannot forget the steps whose absence leaves a server process hanging.
//
// # The life of a server process
//
// A server process hosts one game session and then exits; whoever started it (a supervisor, an agent, a shell loop)
// starts the next one.
//
//	New
//	Connect                   the service knows the process
//	NotifyProcessReady        the port is open, a session may come; Start is both in one
//	  OnCreateSessionBegin    the service wants a session: load the level
//	                          nil: the session is activated, players may be sent here
//	                          error: the process reports its end, the session with it
//	  OnCreateSessionEnd      the session is ACTIVE
//	    ValidatePlayerJoin    for each client that connects with a player session id
//	    HandlePlayerLeave     for each connection that has closed
//	    OnUpdateSessionBegin  match backfill has come to a result
//	    OnUpdateSessionEnd    and Session has the new data
//	The last player's leaving, End, a cancelled context, or the service's wish
//	  OnDestroySessionBegin   save what has to be saved
//	  (the end is reported, the connection closed)
//	  OnDestroySessionEnd     exit now
//
// # A whole server
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//		defer stop()
//
//		var options gameserver.Options
//		options.AddFlags(flag.CommandLine) // -authtoken -hostid -fleetid -websocketurl -processid -port
//		flag.Parse()
//
//		srv := gameserver.New(options, gameserver.Callbacks{
//			OnCreateSessionBegin: func(ctx context.Context, s gameserver.Session) error {
//				return world.Load(ctx, s.Properties["level"])
//			},
//		})
//		go world.Serve(srv) // opens the game's port; calls srv.ValidatePlayerJoin and srv.HandlePlayerLeave
//		if err := srv.Run(ctx); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// Open the game's own port before Run or Start: a session, and its players, may come at once.
//
// # Players
//
// A game client reserves a seat through the service (with package gameclient: JoinSession) and gets a player session id.
// It shows that id to the game server when it connects. The server must ask before it lets the client play:
//
//	switch err := srv.ValidatePlayerJoin(ctx, connection, id); {
//	case err == nil:                                    // the seat is taken, welcome
//	case errors.Is(err, gameserver.ErrRefused):         // unknown, late, or already used: close this connection
//	case errors.Is(err, gameserver.ErrUnavailable):     // no answer: the client may try again in a moment
//	}
//
// and must say with HandlePlayerLeave when the connection has closed, or the seat stays taken until the session ends. A
// client that lost its connection needs a new player session to come back: an id is accepted once.
//
// When the last player has left, the session ends by itself, and the process with it; Options.KeepWhenEmpty switches that
// off, and Options.EmptyTimeout ends sessions that nobody joins. A game that keeps its own books uses AcceptPlayer and
// RemovePlayer instead, and decides about the end itself.
//
// # Several parts
//
// New takes any number of Callbacks: the level, the anti-cheat and the statistics of a game each bring their own. All are
// called, in order. A session is activated if no OnCreateSessionBegin fails, a process is well if no OnSessionHealthCheck
// denies it. An error of OnDestroySessionBegin is told by Wait and delays nothing: a part that needs time takes it, until
// its context ends.
//
// # Backfill
//
// A session that a match made has Session.MatchmakerData, which ParseMatchData reads. StartMatchBackfill asks for players
// for its free seats; the result comes with OnUpdateSessionBegin, and the new players connect like all others.
//
// # Player flow
//
// A Muster with player flow keeps a record of where every player is, and a game server need not know of it. One that wants to
// asks for the GameInstance of its session, which checks who a player is, tells a quit from a lost connection, removes and adds
// players, reports results, and tells what players do elsewhere:
//
//	game, err := srv.GameInstance(ctx, gameserver.GameInstanceOptions{Endpoint: "https://muster.example.com:8081"})
//	who, err := game.Verify(ctx, playerSessionID, connectionToken) // then ValidatePlayerJoin
//	for n, err := range game.Notices(ctx) { … }                    // OnPlayerReconnecting, OnPlayerLeft, …
//	err = game.End(ctx, gameserver.GameResult{Results: results})   // its players are free
//
// # Health
//
// About once a minute the service asks how the process is. Without OnSessionHealthCheck the answer is "well" (the
// bare SDK would answer "ill" and never get a session). A process that is ill or silent three times in a row is told
// to end.
//
// # Where the options come from
//
// The environment wins over flags and fields, because that is how an agent on a host passes them to the processes it
// starts, and how the SDK has it: GAMELIFT_SDK_WEBSOCKET_URL, GAMELIFT_SDK_AUTH_TOKEN, GAMELIFT_SDK_FLEET_ID,
// GAMELIFT_SDK_HOST_ID and GAMELIFT_SDK_PROCESS_ID. Instead of a token, GAMELIFT_REGION, GAMELIFT_ACCESS_KEY,
// GAMELIFT_SECRET_KEY and GAMELIFT_SESSION_TOKEN sign the connection.
//
// # Contexts
//
// Every call takes a context. The SDK cannot be interrupted, so a cancelled call returns at once while its request
// may still reach the service. The connection is kept, and found again when it breaks or the service restarts; a
// call made meanwhile waits for it, for up to three minutes if its context allows.
package gameserver
