// Package searchindex finds the game sessions of a fleet that a filter chooses, without looking at their records.
//
// What can be asked of a game session is kept in columns: blocks of up to 512 game sessions with an array for each
// attribute. A comparison runs over such an array and leaves a bit for each row; AND, OR and NOT are operations on
// words of bits. So the cost of a search hardly depends on what is asked: a fleet of 100,000 game sessions is passed over in
// 0.1 to 0.4 ms, in steps of some 30 µs between which writers go on. A tree for each attribute would be
// faster for filters that one of them answers, and far slower for all others; and a player who takes a seat would
// cost the writer three trees, where here it is one number in an array.
//
// Texts are numbered in dictionaries, so that comparing them is comparing numbers; labels give the numbers the order of
// their texts.
//
// # Why a scan in steps is right
//
// Blocks hold neighbours on a ring: each game session has a mark, a hash of its id, which never changes. A scan remembers the part of the
// ring that is left and looks up the block anew at each step, so blocks may be split and joined between two steps. The parts it passes
// over are disjoint and cover the ring. That makes three things exact: a scan meets each game session that is there throughout once;
// a search without order may begin anywhere and stop when its page is full; and the next page goes on behind the last
// result, also after a restart. A game session that comes or goes meanwhile may be found or not: both were right at some moment.
//
// Results in the order of texts are compared by labels. A label stays while its text is in use, and a new text gets one between
// its neighbours'. When there is no room between them all labels are spread anew; a scan that has compared old ones begins again. After four
// times it finishes in one step, which keeps the writer out meanwhile, so that it ends under constant change, too.
//
// # Bounds
//
// A row takes about 40 bytes, and a block is at least a quarter full, or its neighbours are too full to join it. A key that more than 32
// rows of a block have takes 2 KiB in it, at most 64 bytes a value; with fewer, 8 bytes a value. A step makes 128 comparisons with blocks, some
// 30 µs. A seat that is taken changes two numbers and a bit. A game session that comes or goes costs a search among the blocks, and now and
// then the move of half a block.
//
// # What would break it
//
// The index does not read records: the state that owns it calls Add, SetPlayers, Change and Remove for every change of what Session names,
// with the values of before where they are asked for. A use of a dictionary that is not released keeps its text for ever; one that
// is released twice gives its number to another text, and searches find the wrong game sessions. TestFindsWhatLookingAtEachFinds
// and TestPagesUnderChange compare with a look at each game session.
package searchindex
