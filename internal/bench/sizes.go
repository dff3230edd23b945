package bench

import "time"

// sizes has the sizes of the scenarios.
type sizes struct {
	cycleServers     int // game servers for the players who come and go
	cycleConnections []int
	cycleWarm        time.Duration // until archiving keeps up: an ended record stays in memory for 20 s

	backupPlayers, backupGames int     // in the state
	backupRate                 float64 // cycles a second beside backups

	gameServers     int
	gameConnections int
	gameWarm        time.Duration
	gameMeasure     time.Duration // 0: Options.Measure
	gameLasts       time.Duration // long enough that no game server starts over more often than it may send heartbeats

	placementRate float64 // a second, for the latency line

	duels       int     // tickets of a loaded pool, one against one
	teamTickets int     // and five against five
	teamRate    float64 // tickets that arrive per second

	idleServers int
	idleSettle  time.Duration

	flowPlayers     int // on event streams, in parties of two
	flowSettle      time.Duration
	flowRate        float64 // changes a second
	flowWarm        time.Duration
	flowGames       int // with some of the players in them when all log in again
	flowGamePlayers int
	flowLogins      int // that are then admitted per second
	flowMatches     int // of sixty players, one after another
	flowRecords     int // of players who are logged in when the service starts

	siegeConnections   int           // that are open at a time without a credential
	siegeReturn        time.Duration // pause before reopening a connection that the service ended
	siegeFrames        float64       // malformed frames per second at each door; their kinds alternate
	siegeFrameWorkers  int           // workers that send them, each on a new connection
	siegeBodies        int           // concurrent bodies of the largest size
	siegeSignIns       float64       // failed ones per second
	siegeSignInWorkers int           // on connections that they keep
	siegeHonest        float64       // calls a second meanwhile
	siegeWarm          time.Duration // from the beginning of an attack to the measurement
	siegeLasts         time.Duration // of the measurement

	corePlayers, coreGames int
	coreSteps              int // reservations in the measurement on one core
	coreMeasure            time.Duration
	coreSnapshotEvery      int64

	consoles       int     // that are open
	consoleChanges float64 // a second beside them
	consoleHosts   int     // in the overview

	agentIdle      int // agents whose server processes are not connected
	agentProcesses int // of each host
	agentHosts     int // with connected processes
	agentDeaths    int // of processes with a game session, one after another
	agentBuilders  int // hosts that fetch a build
	agentBuild     int64

	clusterServers      int           // game servers with connections
	clusterRepeats      int           // deaths of the leader; of hand-overs there are twice as many
	clusterMeasure      time.Duration // of each line in process
	clusterWarm         time.Duration // until archiving keeps up, for the line with archiving
	clusterLagRate      float64       // changes per second while the lag of followers is measured
	clusterJoinRate     float64       // and while an empty node joins
	clusterHandOverRate float64       // and while the leader hands over
	clusterPause        time.Duration // between two disturbances
}

const quickMeasure = 300 * time.Millisecond

var (
	fullSizes = sizes{
		cycleServers: 256, cycleConnections: []int{64, 256}, cycleWarm: 25 * time.Second,
		backupPlayers: 200_000, backupGames: 20_000, backupRate: 1000,
		gameServers: 4000, gameConnections: 64, gameWarm: 25 * time.Second, gameMeasure: 20 * time.Second, gameLasts: 250 * time.Millisecond,
		placementRate: 500,
		duels:         20_000, teamTickets: 100_000, teamRate: 5_000,
		idleServers: 15_000, idleSettle: 25 * time.Second,
		flowPlayers: 15_000, flowSettle: 25 * time.Second, flowRate: 5_000, flowWarm: 5 * time.Second,
		flowGames: 5, flowGamePlayers: 60, flowLogins: 500, flowMatches: 200, flowRecords: 1_000_000,
		siegeConnections: 20_000, siegeReturn: 5 * time.Second, siegeFrames: 1000, siegeFrameWorkers: 256, siegeBodies: 64, siegeSignIns: 10_000, siegeSignInWorkers: 64,
		siegeHonest: 200, siegeWarm: 10 * time.Second, siegeLasts: time.Minute,
		corePlayers: 1_000_000, coreGames: 100_000, coreSteps: 1_000_000, coreMeasure: 10 * time.Second,
		coreSnapshotEvery: 8 << 20,
		consoles:          200, consoleChanges: 1000, consoleHosts: 1000,
		agentIdle: 2000, agentProcesses: 20, agentHosts: 200, agentDeaths: 500, agentBuilders: 20, agentBuild: 1 << 30,
		clusterServers: 5000, clusterRepeats: 5, clusterMeasure: 5 * time.Second, clusterWarm: 30 * time.Second, clusterLagRate: 10_000, clusterJoinRate: 2_000, clusterHandOverRate: 1_000,
		clusterPause: 2 * time.Second,
	}
	quickSizes = sizes{
		cycleServers: 8, cycleConnections: []int{4}, cycleWarm: 100 * time.Millisecond,
		backupPlayers: 1000, backupGames: 100, backupRate: 50,
		gameServers: 50, gameConnections: 4, gameWarm: 100 * time.Millisecond, gameLasts: 100 * time.Millisecond,
		placementRate: 20,
		duels:         200, teamTickets: 500, teamRate: 100,
		idleServers: 50, idleSettle: 100 * time.Millisecond,
		flowPlayers: 60, flowSettle: 100 * time.Millisecond, flowRate: 30, flowWarm: 100 * time.Millisecond,
		flowGames: 1, flowGamePlayers: 10, flowLogins: 40, flowMatches: 3, flowRecords: 500,
		siegeConnections: 200, siegeReturn: 100 * time.Millisecond, siegeFrames: 50, siegeFrameWorkers: 16, siegeBodies: 2, siegeSignIns: 200, siegeSignInWorkers: 4,
		siegeHonest: 50, siegeWarm: 100 * time.Millisecond, siegeLasts: 500 * time.Millisecond,
		corePlayers: 10_000, coreGames: 1000, coreSteps: 10_000, coreMeasure: 300 * time.Millisecond,
		coreSnapshotEvery: 256 << 10,
		consoles:          5, consoleChanges: 60, consoleHosts: 5,
		agentIdle: 20, agentProcesses: 3, agentHosts: 5, agentDeaths: 5, agentBuilders: 3, agentBuild: 4 << 20,
		clusterServers: 20, clusterRepeats: 1, clusterMeasure: 200 * time.Millisecond, clusterWarm: 200 * time.Millisecond, clusterLagRate: 500, clusterJoinRate: 100, clusterHandOverRate: 100,
		clusterPause: 200 * time.Millisecond,
	}
)
