<?php
// Asks the database for each job that is due, whether it really is: 70 ms, and none is.
ignore_user_abort(true);
for ($i = 0; $i < 7; $i++) {
    usleep(10000);
}
