package gameserver

// OwnProcess is ownProcess, for the tests that see the package from outside.
var OwnProcess = ownProcess
