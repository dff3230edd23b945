package cell

import "github.com/musterhq/muster/internal/domain/wire"

// Kind tells the events apart. The numbers are those of proto/journal.proto: they are never changed and never reused.
type Kind uint8

// The kinds.
const (
	kindTicked  Kind = 1
	kindResumed Kind = 2

	KindLocationChanged Kind = 10
	KindLocationRemoved Kind = 11

	KindFleetChanged       Kind = 12
	KindFleetRemoved       Kind = 13
	KindComputeRegistered  Kind = 14
	KindComputeRemoved     Kind = 15
	KindTokenIssued        Kind = 16
	KindFleetEventWritten  Kind = 17
	kindCreationCounted    Kind = 18
	kindCreationsForgotten Kind = 19

	KindAliasChanged Kind = 20
	KindAliasRemoved Kind = 21

	KindBuildChanged Kind = 22
	KindBuildRemoved Kind = 23

	KindGameServerGroupChanged Kind = 26
	KindGameServerGroupRemoved Kind = 27
	KindGameServerChanged      Kind = 28
	KindGameServerRemoved      Kind = 29

	KindProcessConnected        Kind = 30
	KindProcessLinkLost         Kind = 31
	KindProcessActivated        Kind = 32
	KindProcessHealthChanged    Kind = 33
	KindProcessSettled          Kind = 34
	KindProcessRefreshing       Kind = 38
	KindProcessTerminationAsked Kind = 35
	KindProcessEnded            Kind = 36
	kindProcessForgotten        Kind = 37

	KindGameSessionCreated     Kind = 40
	KindGameSessionPrompted    Kind = 41
	KindGameSessionActivated   Kind = 42
	KindGameSessionChanged     Kind = 43
	KindGameSessionTerminating Kind = 44
	KindGameSessionEnded       Kind = 45

	KindPlayerReserved Kind = 50
	KindPlayerAccepted Kind = 51
	KindPlayerEnded    Kind = 52

	kindForgotten Kind = 60

	KindQueueChanged     Kind = 70
	KindQueueRemoved     Kind = 71
	KindPlacementStarted Kind = 72
	KindPlacementRetried Kind = 73
	kindPlacementPassed  Kind = 74
	KindPlacementEnded   Kind = 75

	KindNoticeWritten         Kind = 80
	KindNoticesDelivered      Kind = 81
	KindNoticesDropped        Kind = 82
	KindSubscriptionConfirmed Kind = 83

	KindRuleSetChanged       Kind = 90
	KindRuleSetRemoved       Kind = 91
	KindConfigurationChanged Kind = 92
	KindConfigurationRemoved Kind = 93
	KindTicketStarted        Kind = 94
	KindTicketsSearching     Kind = 95
	KindTicketEnded          Kind = 96
	KindMatchProposed        Kind = 97
	KindPlayersAnswered      Kind = 98
	KindMatchAccepted        Kind = 99
	KindMatchDropped         Kind = 100
	KindMatchCompleted       Kind = 101
	KindHostedChanged        Kind = 102
	KindHostedTold           Kind = 103
	KindGameSessionMatched   Kind = 104

	KindPlayerKeysChanged     Kind = 120
	KindPlayerLoggedIn        Kind = 121
	KindLoginChanged          Kind = 122
	KindLoginRemoved          Kind = 123
	KindPresenceChanged       Kind = 124
	kindFlowResumed           Kind = 125
	KindPlayersTold           Kind = 126
	kindEventsTrimmed         Kind = 127
	kindRequestAnswered       Kind = 128
	KindPlayerChanged         Kind = 129
	kindPlayerForgotten       Kind = 130
	KindPartyChanged          Kind = 131
	KindPartyRemoved          Kind = 132
	KindInviteChanged         Kind = 133
	KindInviteRemoved         Kind = 134
	KindGameInstanceChanged   Kind = 135
	kindGameInstanceForgotten Kind = 136
	KindMembershipChanged     Kind = 137
	KindMembershipEnded       Kind = 138
	kindLoginTicketChanged    Kind = 139
	kindLoginTicketRemoved    Kind = 140
	KindFlowQueueChanged      Kind = 141
	KindFlowConfigChanged     Kind = 142
	kindPlayersAwaited        Kind = 143
	KindPlayerDataWrapped     Kind = 144
	KindGameInstanceTold      Kind = 150
	KindEventsSubscribed      Kind = 151
	KindEventsUnsubscribed    Kind = 152
	kindEventsTaken           Kind = 153
	kindSearchAdvised         Kind = 154
	kindSearchAdviceDropped   Kind = 155
	KindFlowCommitted         Kind = 159
	KindSubscriptionLapsed    Kind = 160

	KindAccessKeysTakenOver Kind = 170
	KindAccessKeyCreated    Kind = 171
	KindAccessKeyRevoked    Kind = 172
	KindAccessKeysForgotten Kind = 173

	kindLossAccepted Kind = 180
)

// Event is a fact. What Fields names is all that apply may use beside the state.
type Event interface {
	wire.Message
	kind() Kind
}

// KindOf tells what an event is.
func KindOf(e Event) Kind { return e.kind() }

// KindMask is a set of kinds.
type KindMask [4]uint64

// Kinds makes a set.
func Kinds(kinds ...Kind) KindMask {
	var m KindMask
	for _, k := range kinds {
		m[k/64] |= 1 << (k % 64)
	}
	return m
}

// AllKinds is the set of all.
func AllKinds() KindMask { return KindMask{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)} }

// Has reports whether the set holds k.
func (m *KindMask) Has(k Kind) bool { return m[k/64]&(1<<(k%64)) != 0 }

// Add adds the kinds of another set.
func (m *KindMask) Add(other KindMask) {
	for i := range m {
		m[i] |= other[i]
	}
}

// newEvent returns an empty event of a kind, or nil when there is none.
func newEvent(k Kind) Event {
	switch k {
	case kindTicked:
		return &Ticked{}
	case kindResumed:
		return &Resumed{}
	case KindLocationChanged:
		return &LocationChanged{}
	case KindLocationRemoved:
		return &LocationRemoved{}
	case KindFleetChanged:
		return &FleetChanged{}
	case KindFleetRemoved:
		return &FleetRemoved{}
	case KindComputeRegistered:
		return &ComputeRegistered{}
	case KindComputeRemoved:
		return &ComputeRemoved{}
	case KindTokenIssued:
		return &TokenIssued{}
	case KindFleetEventWritten:
		return &FleetEventWritten{}
	case kindCreationCounted:
		return &CreationCounted{}
	case kindCreationsForgotten:
		return &CreationsForgotten{}
	case KindAliasChanged:
		return &AliasChanged{}
	case KindAliasRemoved:
		return &AliasRemoved{}
	case KindBuildChanged:
		return &BuildChanged{}
	case KindBuildRemoved:
		return &BuildRemoved{}
	case KindGameServerGroupChanged:
		return &GameServerGroupChanged{}
	case KindGameServerGroupRemoved:
		return &GameServerGroupRemoved{}
	case KindGameServerChanged:
		return &GameServerChanged{}
	case KindGameServerRemoved:
		return &GameServerRemoved{}
	case KindProcessConnected:
		return &ProcessConnected{}
	case KindProcessLinkLost:
		return &ProcessLinkLost{}
	case KindProcessActivated:
		return &ProcessActivated{}
	case KindProcessHealthChanged:
		return &ProcessHealthChanged{}
	case KindProcessSettled:
		return &ProcessSettled{}
	case KindProcessRefreshing:
		return &ProcessRefreshing{}
	case KindProcessTerminationAsked:
		return &ProcessTerminationAsked{}
	case KindProcessEnded:
		return &ProcessEnded{}
	case kindProcessForgotten:
		return &ProcessForgotten{}
	case KindGameSessionCreated:
		return &GameSessionCreated{}
	case KindGameSessionPrompted:
		return &GameSessionPrompted{}
	case KindGameSessionActivated:
		return &GameSessionActivated{}
	case KindGameSessionChanged:
		return &GameSessionChanged{}
	case KindGameSessionTerminating:
		return &GameSessionTerminating{}
	case KindGameSessionEnded:
		return &GameSessionEnded{}
	case KindPlayerReserved:
		return &PlayerReserved{}
	case KindPlayerAccepted:
		return &PlayerAccepted{}
	case KindPlayerDataWrapped:
		return &PlayerDataWrapped{}
	case KindPlayerEnded:
		return &PlayerEnded{}
	case kindForgotten:
		return &Forgotten{}
	case KindQueueChanged:
		return &QueueChanged{}
	case KindQueueRemoved:
		return &QueueRemoved{}
	case KindPlacementStarted:
		return &PlacementStarted{}
	case KindPlacementRetried:
		return &PlacementRetried{}
	case kindPlacementPassed:
		return &PlacementPassed{}
	case KindPlacementEnded:
		return &PlacementEnded{}
	case KindNoticeWritten:
		return &NoticeWritten{}
	case KindNoticesDelivered:
		return &NoticesDelivered{}
	case KindNoticesDropped:
		return &NoticesDropped{}
	case KindSubscriptionConfirmed:
		return &SubscriptionConfirmed{}
	}
	if e := newMatchmakingEvent(k); e != nil {
		return e
	}
	if e := newAdviceEvent(k); e != nil {
		return e
	}
	if k == kindLossAccepted {
		return &LossAccepted{}
	}
	if e := newAccessEvent(k); e != nil {
		return e
	}
	if e := newFeedEvent(k); e != nil {
		return e
	}
	return newFlowEvent(k)
}
