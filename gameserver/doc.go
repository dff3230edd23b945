// Package gameserver makes a Go program a dedicated game server for a game session service.
//
// It works with Muster and, unchanged, with Amazon GameLift Servers. It calls the official server SDK for Go, version 5, and adds
// contexts, kinds of errors, one struct of options and a few callbacks. It also takes the steps whose absence leaves a server
// process hanging.
//
// # The life of a server process
//
// A server process hosts one game session and then exits. The program that started it (a supervisor, an agent, a shell loop)
// starts the next one.
//
//	New
//	Connect                   the service knows the process
//	NotifyProcessReady        the port is open, a session may come; Start does both steps
//	  OnCreateSessionBegin    the service creates a session: load the level
//	                          nil: the session becomes ACTIVE, and players may connect
//	                          error: the process ends, and the session with it
//	  OnCreateSessionEnd      the session is ACTIVE
//	    ValidatePlayerJoin    for each client that connects with a player session id
//	    HandlePlayerLeave     for each connection that has closed
//	    OnUpdateSessionBegin  match backfill has a result
//	    OnUpdateSessionEnd    Session has the new data
//	The last player leaves, End is called, the context is cancelled, or the service ends the process
//	  OnDestroySessionBegin   save the game
//	  (the process reports its end and closes the connection)
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
// Open the game's own port before Run or Start, because a session and its players may come at once.
//
// # Players
//
// A game client reserves a seat with the service (with package gameclient: JoinSession) and gets a player session id.
// It sends this id to the game server when it connects. The server must validate it before it lets the client play:
//
//	switch player, err := srv.ValidatePlayerJoin(ctx, connection, id); {
//	case err == nil:                                    // player.PlayerID has the seat
//	case errors.Is(err, gameserver.ErrRefused):         // unknown, late, or already used: close this connection
//	case errors.Is(err, gameserver.ErrUnavailable):     // no answer: the client may try again soon
//	}
//
// When the connection has closed, the server must call HandlePlayerLeave, or the seat stays taken until the session ends. A
// client that has lost its connection needs a new player session to return, because an id is accepted once.
//
// When the last player has left, the session ends, and the process with it. Options.KeepWhenEmpty switches that
// off, and Options.EmptyTimeout ends sessions that no player joins. A game that counts its players itself uses AcceptPlayer and
// RemovePlayer instead, and calls End.
//
// # Several sets of callbacks
//
// New takes any number of Callbacks: the level, the anti-cheat and the statistics of a game may each have their own. The Server
// calls all of them, in order. A session becomes ACTIVE if no OnCreateSessionBegin fails, and a process is healthy if no
// OnSessionHealthCheck returns false. Wait returns the errors of OnDestroySessionBegin, which do not stop the end.
//
// # Backfill
//
// A session of a match has Session.MatchmakerData, which ParseMatchData reads. StartMatchBackfill requests players
// for its free seats. OnUpdateSessionBegin reports the result, and the new players connect like all others.
//
// # Player flow
//
// A Muster with player flow keeps a record of where every player is. Game servers may ignore it. A server that takes part in it
// gets the GameInstance of its session, which verifies players, distinguishes a quit from a lost connection, removes and adds
// players, reports results, and sends notices of what players do elsewhere:
//
//	game, err := srv.GameInstance(ctx, gameserver.GameInstanceOptions{Endpoint: "https://muster.example.com:8081"})
//	who, err := game.Verify(ctx, playerSessionID, connectionToken) // then ValidatePlayerJoin
//	for n, err := range game.Notices(ctx) { … }                    // OnPlayerReconnecting, OnPlayerLeft, …
//	err = game.End(ctx, gameserver.GameResult{Results: results})   // its players may join other games
//
// # Health
//
// The process reports its health about once a minute. Without OnSessionHealthCheck it is healthy (the SDK alone would report
// unhealthy and never get a session). The service ends a process that is unhealthy or silent for several minutes.
//
// # The source of the options
//
// Environment variables override flags and fields, as in the SDK, because an agent passes them to the processes that it
// starts: GAMELIFT_SDK_WEBSOCKET_URL, GAMELIFT_SDK_AUTH_TOKEN, GAMELIFT_SDK_FLEET_ID,
// GAMELIFT_SDK_HOST_ID and GAMELIFT_SDK_PROCESS_ID. Instead of a token, GAMELIFT_REGION, GAMELIFT_ACCESS_KEY,
// GAMELIFT_SECRET_KEY and GAMELIFT_SESSION_TOKEN sign the connection.
//
// # Contexts
//
// Every call takes a context. The SDK cannot be interrupted: a cancelled call returns at once, and its request
// may still reach the service. The SDK reconnects when the connection breaks or the service restarts. A
// call made meanwhile waits for the connection, for up to three minutes if its context allows.
package gameserver
