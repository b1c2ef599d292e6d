package asuser

import "testing"

func TestOwner(t *testing.T) {
	const passwd = "root:x:0:0::/root:/bin/sh\npg:x:101:104::/:/bin/false\n"
	for uid, want := range map[int]string{101: "pg", 0: "root", 104: ""} {
		if got := userName([]byte(passwd), uid); got != want {
			t.Errorf("user %d is %q, want %q", uid, got, want)
		}
	}
	if uid, gid, err := effective([]byte("Name:\tpostgres\nUid:\t101\t102\t101\t101\nGid:\t104\t105\t104\t104\n")); uid != 102 || gid != 105 || err != nil {
		t.Errorf("effective ids are %d, %d, %v", uid, gid, err)
	}
	if _, _, err := effective([]byte("Name:\tpostgres\nUid:\t101\t102\t101\t101\n")); err == nil {
		t.Error("a process without a group has an owner")
	}
}
