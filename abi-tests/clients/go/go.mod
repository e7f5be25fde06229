module rlx.test/client

go 1.19
